// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @rank(%x: !ait.tensor<8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: level 0 is [batch, H, W, C], got [8, 8, 8]}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @none(%r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: has 0 levels of features, expected 1 to 8}}
  %0 = ait.roi_align rois %r scales [] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @levels(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %p: !ait.tensor<1 x 8 x 8 x 4 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: level 1 is !ait.tensor<1 x 8 x 8 x 4 x f16>, expected the batch, channels and type of level 0, !ait.tensor<1 x 8 x 8 x 8 x f16>}}
  %0 = ait.roi_align %x, %p rois %r scales [1.0, 0.5] second_from 9.0 : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @types(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %p: !ait.tensor<1 x 8 x 8 x 8 x f32>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: level 1 is !ait.tensor<1 x 8 x 8 x 8 x f32>, expected the batch, channels and type of level 0, !ait.tensor<1 x 8 x 8 x 8 x f16>}}
  %0 = ait.roi_align %x, %p rois %r scales [1.0, 0.5] second_from 9.0 : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @empty(%x: !ait.tensor<1 x 0 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: H and W of level 0 are 0 and 8, expected at least 1}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @rois(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 4 x f16>) {
  // expected-error @below {{ait.roi_align: rois are [regions, 5], got [3, 4]}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @integers(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x i32>) {
  // expected-error @below {{ait.roi_align: needs floating-point types, got f16 and i32}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @scales(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: scales are [1.0, 2.0], expected 1 numbers above 0}}
  %0 = ait.roi_align %x rois %r scales [1.0, 2.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @scale(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: scales are [0.0], expected 1 numbers above 0}}
  %0 = ait.roi_align %x rois %r scales [0.0] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @sampling(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: sampling is 0, expected 1 to 4096}}
  %0 = ait.roi_align %x rois %r scales [1.0] sampling 0 : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @needless(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: has 1 levels; second_from, a size above 0, is for several}}
  %0 = ait.roi_align %x rois %r scales [1.0] second_from 9.0 : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @missing(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %p: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: has 2 levels; second_from, a size above 0, is for several}}
  %0 = ait.roi_align %x, %p rois %r scales [1.0, 0.5] : !ait.tensor<3 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @result(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: the result is [regions, bins, bins, channels], got [3, 2, 8]}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<3 x 2 x 8 x f16>
}

// -----

ait.graph @regions(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: the result is !ait.tensor<4 x 2 x 2 x 8 x f16>, expected !ait.tensor<3 x 2 x 2 x 8 x f16>}}
  %0 = ait.roi_align %x rois %r scales [1.0] : !ait.tensor<4 x 2 x 2 x 8 x f16>
}

// -----

ait.graph @positions(%x: !ait.tensor<1 x 8 x 8 x 8 x f16>, %r: !ait.tensor<3 x 5 x f16>) {
  // expected-error @below {{ait.roi_align: 8 channels are not proved to be a multiple of 3 bins}}
  %0 = ait.roi_align %x rois %r scales [1.0] position_sensitive : !ait.tensor<3 x 3 x 1 x 2 x f16>
}

// -----

ait.graph @boxes(%b: !ait.tensor<9 x 5 x f16>) {
  // expected-error @below {{ait.nms: boxes are [..., N, 4] of a floating-point type, got !ait.tensor<9 x 5 x f16>}}
  %0 = ait.nms %b iou 0.5 : !ait.tensor<9 x i1>
}

// -----

ait.graph @whole(%b: !ait.tensor<9 x 4 x i32>) {
  // expected-error @below {{ait.nms: boxes are [..., N, 4] of a floating-point type, got !ait.tensor<9 x 4 x i32>}}
  %0 = ait.nms %b iou 0.5 : !ait.tensor<9 x i1>
}

// -----

ait.graph @iou(%b: !ait.tensor<9 x 4 x f16>) {
  // expected-error @below {{ait.nms: iou is 1.5, expected 0 to 1}}
  %0 = ait.nms %b iou 1.5 : !ait.tensor<9 x i1>
}

// -----

ait.graph @valid(%b: !ait.tensor<9 x 4 x f16>, %v: !ait.tensor<8 x i1>) {
  // expected-error @below {{ait.nms: valid is !ait.tensor<8 x i1>, expected i1 for each box of [9, 4]}}
  %0 = ait.nms %b valid %v iou 0.5 : !ait.tensor<9 x i1>
}

// -----

ait.graph @numbers(%b: !ait.tensor<9 x 4 x f16>, %v: !ait.tensor<9 x i32>) {
  // expected-error @below {{ait.nms: valid is !ait.tensor<9 x i32>, expected i1 for each box of [9, 4]}}
  %0 = ait.nms %b valid %v iou 0.5 : !ait.tensor<9 x i1>
}

// -----

ait.graph @mask(%b: !ait.tensor<9 x 4 x f16>) {
  // expected-error @below {{ait.nms: the result is !ait.tensor<9 x i32>, expected !ait.tensor<9 x i1>}}
  %0 = ait.nms %b iou 0.5 : !ait.tensor<9 x i32>
}
