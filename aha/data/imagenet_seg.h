// The ImageNet segmentation benchmark (Guillaumin et al. 2014): 4276 images with the mask of their object,
// one MATLAB 7.3 file (HDF5), gtsegs_ijcv.mat.
//
// value/img holds references to arrays (3, W, H) of bytes, value/gt references to cells with a reference to
// an array (W, H), non-zero = object; MATLAB writes columns first. Labels are not known. The library may not
// be used by two threads at once, so reading waits its turn; decoded images are not kept.
#pragma once

#include "aha/data/dataset.h"

namespace aha {

// Image i is called imagenet-seg/i.
std::unique_ptr<Dataset> open_imagenet_seg(const std::string& file);

}  // namespace aha
