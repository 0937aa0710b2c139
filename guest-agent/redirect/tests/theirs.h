/* The functions of a runtime that the tests call. All return the number of the runtime that has executed. */
int __cudaRegisterFatBinary(void);
int cudaMalloc(void);
int cudaDeviceReset(void);      /* 5 bytes long in a static runtime of the tests */
int __cudaGetProcAddress(void); /* 3 bytes long: too short for a jump */

/* The sum of its arguments, each times its place. */
double cudaLaunchKernel(long a, long b, long c, long d, long e, long f, long g, long h, double i, double j, double k,
                        double l, double m, double n, double o, double p, double q);
