#ifndef HWS_SHAPES_FUNCTIONS_H
#define HWS_SHAPES_FUNCTIONS_H

/* The exported functions. Their types come first: hws_shapes_types.h or the library's own header. */
shapesStatus_t shapesCreate(shapesHandle_t *handle);
shapesStatus_t shapesDestroy(shapesHandle_t handle);
shapesStatus_t shapesSetStream(shapesHandle_t handle, CUstream streamId);
shapesStatus_t shapesGetName(unsigned int device, char *name, unsigned int length);
shapesStatus_t shapesGetMemory(unsigned int device, shapesMemory_t *memory, unsigned int *processCount, double *utilization);
shapesStatus_t shapesScale(shapesHandle_t handle, int64_t n, double factor, float bias, signed char mode, const void *alpha, shapesTensorDescriptor_t xDesc, CUdeviceptr x);
shapesStatus_t shapesBatched(int count, const CUdeviceptr *addresses, const shapesHandle_t *handles, const char *label, uint16_t extraBytes, const void *extra, int *results, float *first);
shapesStatus_t shapesGetLog(shapesHandle_t handle, uint32_t capacity, char *log);
shapesStatus_t shapesOpen(unsigned long long *sum, shapesMemory_t memory, shapesHandle_t handle, const char *name);
shapesStatus_t shapesClose(shapesHandle_t handle, int mode);
shapesStatus_t shapesMove(cuComplex step, shapesHandle_t handle, cuDoubleComplex center, double *distance);
shapesStatus_t shapesFill(shapesHandle_t handle, int mode, const HwsShapesBox *box, const HwsShapesPlace *place, const void *data);

#endif
