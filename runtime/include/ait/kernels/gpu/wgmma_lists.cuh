/// @file wgmma_lists.cuh
/// @brief The lists of result registers that the assembly of the warpgroup products names.
///
/// `AIT_R0` to `AIT_R7` are the operand numbers of 16 to 128 results, `AIT_D0` to `AIT_D7` the constraints of the same elements of `d`
/// if they are floats, `AIT_I0` to `AIT_I7` if they are integers.
#ifndef AIT_KERNELS_GPU_WGMMA_LISTS_CUH_
#define AIT_KERNELS_GPU_WGMMA_LISTS_CUH_

#define AIT_R0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define AIT_R1 AIT_R0 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define AIT_R2 AIT_R1 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define AIT_R3 AIT_R2 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define AIT_R4 AIT_R3 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define AIT_R5 AIT_R4 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define AIT_R6 AIT_R5 ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define AIT_R7 AIT_R6 ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define AIT_QUAD(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define AIT_D0 AIT_QUAD(0), AIT_QUAD(4), AIT_QUAD(8), AIT_QUAD(12)
#define AIT_D1 AIT_D0, AIT_QUAD(16), AIT_QUAD(20), AIT_QUAD(24), AIT_QUAD(28)
#define AIT_D2 AIT_D1, AIT_QUAD(32), AIT_QUAD(36), AIT_QUAD(40), AIT_QUAD(44)
#define AIT_D3 AIT_D2, AIT_QUAD(48), AIT_QUAD(52), AIT_QUAD(56), AIT_QUAD(60)
#define AIT_D4 AIT_D3, AIT_QUAD(64), AIT_QUAD(68), AIT_QUAD(72), AIT_QUAD(76)
#define AIT_D5 AIT_D4, AIT_QUAD(80), AIT_QUAD(84), AIT_QUAD(88), AIT_QUAD(92)
#define AIT_D6 AIT_D5, AIT_QUAD(96), AIT_QUAD(100), AIT_QUAD(104), AIT_QUAD(108)
#define AIT_D7 AIT_D6, AIT_QUAD(112), AIT_QUAD(116), AIT_QUAD(120), AIT_QUAD(124)
#define AIT_INTS(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define AIT_I0 AIT_INTS(0), AIT_INTS(4), AIT_INTS(8), AIT_INTS(12)
#define AIT_I1 AIT_I0, AIT_INTS(16), AIT_INTS(20), AIT_INTS(24), AIT_INTS(28)
#define AIT_I2 AIT_I1, AIT_INTS(32), AIT_INTS(36), AIT_INTS(40), AIT_INTS(44)
#define AIT_I3 AIT_I2, AIT_INTS(48), AIT_INTS(52), AIT_INTS(56), AIT_INTS(60)
#define AIT_I4 AIT_I3, AIT_INTS(64), AIT_INTS(68), AIT_INTS(72), AIT_INTS(76)
#define AIT_I5 AIT_I4, AIT_INTS(80), AIT_INTS(84), AIT_INTS(88), AIT_INTS(92)
#define AIT_I6 AIT_I5, AIT_INTS(96), AIT_INTS(100), AIT_INTS(104), AIT_INTS(108)
#define AIT_I7 AIT_I6, AIT_INTS(112), AIT_INTS(116), AIT_INTS(120), AIT_INTS(124)

#endif  // AIT_KERNELS_GPU_WGMMA_LISTS_CUH_
