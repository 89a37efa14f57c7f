// Twelve ways for the lanes of one warp to part and meet again (x has 64 elements, y 32). The comment behind each kernel
// says how many requests the hardware makes: one for every instruction and every group of lanes that execute it together.
#define LANE int(threadIdx.x)

__device__ float one_of_three(const float* x, int which) {
    if (which == 0) return x[LANE];
    else if (which == 1) return x[LANE + 8];
    else return x[LANE + 16];
}
extern "C" __global__ void else_if(const float* x, float* y) {  // 3 loads, 1 stores
    y[LANE] = one_of_three(x, LANE % 3);
}

extern "C" __global__ void trip_counts(const float* x, float* y) {  // 7 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < LANE % 8; i++) sum += x[i];
    y[LANE] = sum;
}

extern "C" __global__ void while_loop(const float* x, float* y) {  // 8 loads, 1 stores
    float sum = 0;
    int i = LANE % 8;
    while (i > 0) sum += x[i--];
    y[LANE] = sum + x[0];
}

extern "C" __global__ void do_while_loop(const float* x, float* y) {  // 8 loads, 1 stores
    float sum = 0;
    int i = LANE % 8;
    do {
        sum += x[i];
        i--;
    } while (i > 0);
    y[LANE] = sum + x[0];
}

extern "C" __global__ void skips_by_continue(const float* x, float* y) {  // 8 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < 8; i++) {
        if ((i + LANE) % 2) continue;
        sum += x[i];
    }
    y[LANE] = sum;
}

extern "C" __global__ void leaves_by_break(const float* x, float* y) {  // 5 loads, 1 stores
    float sum = 0;
    for (int i = 0;; i++) {
        sum += x[i];
        if (i >= LANE % 4) break;
    }
    y[LANE] = sum + x[31];
}

extern "C" __global__ void leaves_by_return(const float* x, float* y) {  // 8 loads, 8 stores
    for (int i = 0; i < 8; i++) {
        if (i == LANE / 4) {
            y[LANE] = x[i];
            return;
        }
    }
    y[LANE] = x[0];
}

extern "C" __global__ void conditional_value(const float* x, float* y) {  // 8 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += (i + LANE) % 2 ? x[i] : 0.0f;
    y[LANE] = sum;
}

extern "C" __global__ void short_circuit(const float* x, float* y) {  // 8 loads, 1 stores
    int positive = 0;
    for (int i = 0; i < 8; i++)
        if ((i + LANE) % 2 && x[i] > 0.0f) positive++;
    y[LANE] = positive;
}

extern "C" __global__ void switches(const float* x, float* y) {  // 12 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        switch ((LANE + i) % 3) {
            case 0: sum += x[0]; break;
            case 1: sum += x[8]; break;
            default: sum += x[16];
        }
    }
    y[LANE] = sum;
}

extern "C" __global__ void nested(const float* x, float* y) {  // 10 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k <= i; k++)
            if (LANE > 8 * k) sum += x[i + 8 * k];
    y[LANE] = sum;
}

extern "C" __global__ void inner_trip_counts(const float* x, float* y) {  // 15 loads, 1 stores
    float sum = 0;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 1 + (LANE + i) % 4; k++) sum += x[k];
        sum += x[20 + i];
    }
    y[LANE] = sum;
}
