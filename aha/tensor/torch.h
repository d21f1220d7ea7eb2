// The part of libtorch that aha uses, precompiled once for every module above this one.
//
// torch/torch.h whole costs each file 11 s of templates and optimization (datasets, optimizers, every
// functional form); these headers 4 s, with -O1, which the modules on libtorch get
// (cmake/AhaModule.cmake): they only call libtorch and our kernels. What one file alone needs
// (torch/optim/adamw.h, torch/script.h) it includes itself.
#pragma once

#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>
#include <torch/version.h>
