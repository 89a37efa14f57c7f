"""The kernels as published, made from ours by undoing the repairs: they fail where it is said."""

import numpy as np
import pytest
from wrong import run

from softmax_lab import KERNELS, launch, reference
from softmax_lab.excerpts import excerpt

FROM_INFINITY = ("float max = -CUDART_MAX_NORMAL_F;", "float max = -CUDART_INF_F;")
NO_TEST = ("    sum = max == CUDART_INF_F ? CUDART_NAN_F : sum;", "    ")
ONLINE = [name for name in KERNELS if name in ("warp", "warp_rescale") or name.startswith("online")]


def without(name, x, *repairs):
    return run(name, x, *repairs, count=False).y


LOCALS = "const float power = expf(x[i] - max);\n        y[i] = power;\n        sum += power;"
AS_WRITTEN = (
    ("max = fmaxf(max, x[i]);", "if (x[i] > max) max = x[i];"),
    (LOCALS, "y[i] = expf(x[i] - max);\n        sum += y[i];"),
    ("y[i] = y[i] / total;", "y[i] /= total;"),
)


@pytest.mark.parametrize("kind", ["normal", "rising", "falling", "constant"])
def test_what_the_first_published_version_asks_for_as_written(kind):
    # Worklog section 2: 20MN bytes as compiled; y read again in the sum and x at each rise without
    # locals, 24MN + 4R.
    x = reference.inputs(kind, 37, 100)
    rises = sum(int((np.diff(np.maximum.accumulate(r)) > 0).sum()) + 1 for r in x)
    found = run("naive_store", x, *AS_WRITTEN)
    assert reference.compare(found.y, x).ok
    assert found.counts.bytes == 24 * x.size + 4 * rises
    assert run("naive_store", x).counts.bytes == 20 * x.size


LOGS = [f"log_softmax/online_{one}" for one in ("thread", "warp", "block")]
ALIKE = dict(zip(LOGS, ("online", "warp", "block_online"), strict=True))
UNTESTED = {
    LOGS[0]: NO_TEST,
    LOGS[2]: ("return all.max == CUDART_INF_F ? CUDART_NAN_F : all.sum;", "return all.sum;"),
}


def row(cols, *masked):
    x = reference.inputs("normal", 1, cols)
    x[0, list(masked)] = -np.inf
    return x


@pytest.mark.parametrize("name", [name for name in ONLINE if name.startswith("warp")])
def test_a_mask_on_a_lanes_first_column_loses_the_row(name):
    # Worklog section 3: N = 100, columns 0, 5, 31 are first in their lanes; 32, 40, 99 are not.
    for column in (0, 5, 31):
        x = row(100, column)
        assert np.isnan(without(name, x, FROM_INFINITY)).all()
        assert reference.compare(launch(name, x, device="cpu"), x).ok
    for column in (32, 40, 99):
        x = row(100, column)
        assert reference.compare(without(name, x, FROM_INFINITY), x).ok


@pytest.mark.parametrize("name", [name for name in ONLINE if name.startswith("online")])
def test_a_mask_on_the_first_column_loses_the_row(name):
    x = row(10, 0)
    assert np.isnan(without(name, x, FROM_INFINITY)).all()
    assert reference.compare(launch(name, x, device="cpu"), x).ok
    x = row(10, 1)
    assert reference.compare(without(name, x, FROM_INFINITY), x).ok


@pytest.mark.parametrize("name", ["warp", "warp_rescale"])
def test_an_idle_lane_does_no_harm_even_from_infinity(name):
    # Rows of fewer than 32 columns: a lane without columns corrects by exp(-inf + max), which is 0,
    # and 0 times 0 is 0. Only a row that is masked whole meets exp(-inf + inf).
    x = row(7)
    assert reference.compare(without(name, x, FROM_INFINITY), x).ok


def test_infinity_hides_among_zeros_without_the_test_for_it():
    # Only the branch form needs it: the others meet exp(inf - inf) on their way, and so does the
    # correction of a warp.
    x = row(40)
    x[0, 3] = np.inf
    hidden = without("online", x, NO_TEST)
    assert np.isnan(hidden[0, 3])
    assert (np.delete(hidden[0], 3) == 0).all()
    assert not reference.compare(hidden, x).ok
    assert np.isnan(launch("online", x, device="cpu")).all()


@pytest.mark.parametrize("name", LOGS)
def test_a_log_softmax_walks_as_its_softmax_does(name):
    for tag in ("row", "pass"):
        assert excerpt(name, tag).code == excerpt(ALIKE[name], tag).code


@pytest.mark.parametrize("name", LOGS)
def test_a_log_softmax_has_the_repairs_of_its_softmax(name):
    x = row(300, 0)
    assert np.isnan(without(name, x, FROM_INFINITY)).all()
    assert reference.compare_log(launch(name, x, device="cpu"), x).ok
    x = row(300)
    x[0, 3] = np.inf
    assert np.isnan(launch(name, x, device="cpu")).all()
    if name in UNTESTED:  # a warp's correction meets exp(inf - inf) on its way
        hidden = without(name, x, UNTESTED[name])
        assert np.isnan(hidden[0, 3]) and (np.delete(hidden[0], 3) == -np.inf).all()
