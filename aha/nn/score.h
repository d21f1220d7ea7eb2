// What a network's answer for a class is measured as.
#pragma once

namespace aha {

enum class Score { kProbability, kLogit };

}  // namespace aha
