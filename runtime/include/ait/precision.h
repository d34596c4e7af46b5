/// @file precision.h
/// @brief How products of f32 may be computed: the setting that a library call is given.
#ifndef AIT_PRECISION_H_
#define AIT_PRECISION_H_

typedef enum ait_precision {
  AIT_PRECISION_HIGHEST = 0,  ///< exactly
  AIT_PRECISION_HIGH = 1,     ///< with operands rounded to TF32
  AIT_PRECISION_MEDIUM = 2    ///< with operands rounded to bf16, or to TF32
} ait_precision;

#endif  // AIT_PRECISION_H_
