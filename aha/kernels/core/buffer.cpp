#include "aha/kernels/core/buffer.h"

namespace aha {

template class AlignedBuffer<float>;
template class AlignedBuffer<uint8_t>;
template class AlignedBuffer<uint16_t>;
template class AlignedBuffer<int32_t>;
template class AlignedBuffer<int64_t>;

}  // namespace aha
