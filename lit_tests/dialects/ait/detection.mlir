// RUN: ait-opt %s | filecheck %s
// RUN: ait-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC

// CHECK-LABEL: ait.graph @detection
ait.graph @detection(%x: !ait.tensor<b x h x 9 x 8 x f16>, %p: !ait.tensor<b x 4 x 4 x 8 x f16>, %r: !ait.tensor<n x 5 x f32>, %boxes: !ait.tensor<b x n x 4 x f16>, %v: !ait.tensor<b x n x i1>) dims {b = 0 to 4, h = 1 to 64, n = 0 to 100} {
  // CHECK: ait.roi_align %x rois %r scales [0.25] sampling 2 aligned : !ait.tensor<n x 7 x 7 x 8 x f16>
  // GENERIC: "ait.roi_align"(%x, %r) <{scales = [2.500000e-01 : f64], sampling = 2 : i64, aligned}>
  %0 = ait.roi_align %x rois %r scales [0.25] sampling 2 aligned : !ait.tensor<n x 7 x 7 x 8 x f16>
  // CHECK-NEXT: ait.roi_align %x rois %r scales [1.0] position_sensitive {note} : !ait.tensor<n x 2 x 2 x 2 x f16>
  %1 = ait.roi_align %x rois %r scales [1.0] position_sensitive {note} : !ait.tensor<n x 2 x 2 x 2 x f16>
  // CHECK-NEXT: ait.roi_align %x, %p rois %r scales [0.5, 0.25] second_from 112.0 : !ait.tensor<n x 3 x 1 x 8 x f16>
  // GENERIC: second_from = 1.120000e+02 : f64
  %2 = ait.roi_align %x, %p rois %r scales [0.5, 0.25] second_from 112.0 : !ait.tensor<n x 3 x 1 x 8 x f16>
  // CHECK-NEXT: ait.nms %boxes iou 0.5 : !ait.tensor<b x n x i1>
  // GENERIC: "ait.nms"(%boxes) <{iou = 5.000000e-01 : f64}>
  %3 = ait.nms %boxes iou 0.5 : !ait.tensor<b x n x i1>
  // CHECK-NEXT: ait.nms %boxes valid %v iou 0.0 {note} : !ait.tensor<b x n x i1>
  %4 = ait.nms %boxes valid %v iou 0.0 {note} : !ait.tensor<b x n x i1>
  ait.output "y" %4 : !ait.tensor<b x n x i1>
}
