// The epilogues of gemm.h as code on strips. Each has two steps: at(column) once for a panel of 32 columns,
// then finish(row, sums) for each of its rows.
#pragma once

#include <optional>

#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/core/strips.h"

namespace aha {
namespace {

inline Strip bias_strip(const float* bias, int64_t column) {
  return bias ? load_strip(bias + column) : Strip{};
}

inline void fetch_for_write(const void* p) {
  __builtin_prefetch(p, 1, 3);
}

template <class Form, class Description>
struct Finisher;

template <class Form>
struct Finisher<Form, StoreRows> {
  explicit Finisher(const StoreRows& e) : e(e) {}
  struct Panel {
    float* out;
    int64_t stride;
    Strip bias;
    void finish(int64_t row, const Strip& sums) const { store_strip(out + row * stride, sums + bias); }
    void fetch(int64_t row) const {
      fetch_for_write(out + row * stride);
      fetch_for_write(out + row * stride + 16);
    }
  };
  Panel at(int64_t column) const { return {e.out + column, e.stride, bias_strip(e.bias, column)}; }
  StoreRows e;
};

template <class Form>
struct Finisher<Form, AddToRows> {
  explicit Finisher(const AddToRows& e) : e(e) {}
  struct Panel {
    float* out;
    int64_t stride;
    Strip bias;
    void finish(int64_t row, const Strip& sums) const {
      float* p = out + row * stride;
      store_strip(p, load_strip(p) + (sums + bias));
    }
    void fetch(int64_t row) const {
      fetch_for_write(out + row * stride);
      fetch_for_write(out + row * stride + 16);
    }
  };
  Panel at(int64_t column) const { return {e.out + column, e.stride, bias_strip(e.bias, column)}; }
  AddToRows e;
};

template <class Form>
struct Finisher<Form, StoreWithTable> {
  Finisher(const StoreWithTable& e, int64_t columns) : e(e), columns(columns) {}
  struct Panel {
    float* out;
    int64_t stride;
    const float* table;
    int64_t columns, period;
    void finish(int64_t row, const Strip& sums) const {
      store_strip(out + row * stride, sums + load_strip(table + row % period * columns));
    }
    void fetch(int64_t row) const { fetch_for_write(out + row * stride); }
  };
  Panel at(int64_t column) const { return {e.out + column, e.stride, e.table + column, columns, e.period}; }
  StoreWithTable e;
  int64_t columns;
};

template <class Form>
struct Finisher<Form, StoreActivations> {
  explicit Finisher(const StoreActivations& e) : out(*e.out), bias(e.bias) {}
  struct Panel {
    StripsOf<Form> out;
    int64_t strip;
    Strip bias;
    void finish(int64_t row, const Strip& sums) const { out.put(row, strip, sums + bias); }
    void fetch(int64_t row) const { fetch_for_write(out.at(row, strip)); }
  };
  Panel at(int64_t column) const { return {out, column / kStrip, bias_strip(bias, column)}; }
  StripsOf<Form> out;
  const float* bias;
};

template <class Form>
struct Finisher<Form, GeluToActivations> {
  explicit Finisher(const GeluToActivations& e) : out(*e.out), bias(e.bias) {
    if (e.derivative) derivative.emplace(*e.derivative);
  }
  struct Panel {
    StripsOf<Form> out;
    std::optional<SlopesOf<Form>> derivative;
    int64_t strip;
    Strip bias;
    void finish(int64_t row, const Strip& sums) const {
      const Strip x = sums + bias;
      Strip y, slope;
      for (int i = 0; i < kVecs; ++i) {
        const GeluParts parts = gelu_parts(x.v[i]);
        y.v[i] = x.v[i] * parts.distribution;
        slope.v[i] = fma(x.v[i] * splat(0.39894228f), parts.density_root, parts.distribution);
      }
      out.put(row, strip, y);
      if (derivative) derivative->put(row, strip, slope);
    }
    void fetch(int64_t row) const {
      fetch_for_write(out.at(row, strip));
      if (derivative) fetch_for_write(derivative->at(row, strip));
    }
  };
  Panel at(int64_t column) const {
    return {out, derivative, column / kStrip, bias_strip(bias, column)};
  }
  StripsOf<Form> out;
  std::optional<SlopesOf<Form>> derivative;
  const float* bias;
};

template <class Form>
struct Finisher<Form, ScaleToActivations> {
  explicit Finisher(const ScaleToActivations& e) : out(*e.out), factor(*e.factor) {}
  struct Panel {
    StripsOf<Form> out;
    SlopesOf<Form> factor;
    int64_t strip;
    void finish(int64_t row, const Strip& sums) const { out.put(row, strip, sums * factor.get(row, strip)); }
    void fetch(int64_t row) const {
      fetch_for_write(out.at(row, strip));
      __builtin_prefetch(factor.at(row, strip));
    }
  };
  Panel at(int64_t column) const { return {out, factor, column / kStrip}; }
  StripsOf<Form> out;
  SlopesOf<Form> factor;
};

template <class Form>
struct Finisher<Form, StoreHeads> {
  explicit Finisher(const StoreHeads& e) : e(e) {}
  struct Panel {
    typename Form::Element* out;
    const int64_t* rows;
    int64_t plane;
    Strip bias;
    void finish(int64_t row, const Strip& sums) const { Form::put(out + rows[row], plane, sums + bias); }
    void fetch(int64_t row) const { fetch_for_write(out + rows[row]); }
  };
  Panel at(int64_t column) const {
    int64_t within = column;
    int section = 0;
    while (within >= e.sections[section]->columns()) within -= e.sections[section++]->columns();
    const HeadStripsOf<Form> heads(*e.sections[section]);
    return {heads.column(within), heads.rows, heads.plane, bias_strip(e.bias, column)};
  }
  StoreHeads e;
};

template <class Form, class Description>
auto finisher(const Description& e, const PackedWeights& weights) {
  if constexpr (std::is_same_v<Description, StoreWithTable>)
    return Finisher<Form, Description>(e, weights.padded_outputs());
  else
    return Finisher<Form, Description>(e);
}

}  // namespace
}  // namespace aha
