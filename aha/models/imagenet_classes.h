#pragma once

#include "aha/base/imagenet_classes.h"
