// The epilogues of gemm.h as code on panels. Each has two steps: at(column) once for a panel of 32 columns,
// then finish(row, sums) for each of its rows.
#pragma once

#include <optional>

#include "aha/kernels/core/panels.h"
#include "aha/kernels/gemm/gemm.h"

namespace aha {
namespace {

inline Panel bias_panel(const float* bias, int64_t column) {
  return bias ? load_panel(bias + column) : Panel{};
}

inline void fetch_for_write(const void* p) {
  __builtin_prefetch(p, 1, 3);
}

template <class Form, class Description>
struct Finisher;

template <class Description>  // StoreRows or AddToRows
struct RowsFinisher {
  explicit RowsFinisher(const Description& e) : e(e) {}
  struct Sink {
    float* out;
    int64_t stride;
    Panel bias;
    void finish(int64_t row, const Panel& sums) const {
      float* p = out + row * stride;
      const Panel finished = sums + bias;
      store_panel(p, std::is_same_v<Description, AddToRows> ? load_panel(p) + finished : finished);
    }
    void fetch(int64_t row) const {
      fetch_for_write(out + row * stride);
      fetch_for_write(out + row * stride + 16);
    }
  };
  Sink at(int64_t column) const { return {e.out + column, e.stride, bias_panel(e.bias, column)}; }
  Description e;
};
template <class Form>
struct Finisher<Form, StoreRows> : RowsFinisher<StoreRows> {
  using RowsFinisher::RowsFinisher;
};
template <class Form>
struct Finisher<Form, AddToRows> : RowsFinisher<AddToRows> {
  using RowsFinisher::RowsFinisher;
};

template <class Form>
struct Finisher<Form, StoreWithTable> {
  Finisher(const StoreWithTable& e, int64_t columns) : e(e), columns(columns) {}
  struct Sink {
    float* out;
    int64_t stride;
    const float* table;
    int64_t columns, period;
    void finish(int64_t row, const Panel& sums) const {
      store_panel(out + row * stride, sums + load_panel(table + row % period * columns));
    }
    void fetch(int64_t row) const { fetch_for_write(out + row * stride); }
  };
  Sink at(int64_t column) const { return {e.out + column, e.stride, e.table + column, columns, e.period}; }
  StoreWithTable e;
  int64_t columns;
};

template <class Form>
struct Finisher<Form, StoreActivations> {
  explicit Finisher(const StoreActivations& e) : out(*e.out), bias(e.bias) {}
  struct Sink {
    PanelsOf<Form> out;
    int64_t panel;
    Panel bias;
    void finish(int64_t row, const Panel& sums) const { out.put(row, panel, sums + bias); }
    void fetch(int64_t row) const { fetch_for_write(out.at(row, panel)); }
  };
  Sink at(int64_t column) const { return {out, column / kPanel, bias_panel(bias, column)}; }
  PanelsOf<Form> out;
  const float* bias;
};

template <class Form>
struct Finisher<Form, GeluToActivations> {
  explicit Finisher(const GeluToActivations& e) : out(*e.out), bias(e.bias) {
    if (e.derivative) derivative.emplace(*e.derivative);
  }
  struct Sink {
    PanelsOf<Form> out;
    std::optional<ActivationDerivativeOf<Form>> derivative;
    int64_t panel;
    Panel bias;
    void finish(int64_t row, const Panel& sums) const {
      const Panel x = sums + bias;
      Panel y, slope;
      for (int i = 0; i < kVecs; ++i) {
        const GeluParts parts = gelu_parts(x.v[i]);
        y.v[i] = x.v[i] * parts.distribution;
        slope.v[i] = fma(x.v[i] * splat(0.39894228f), parts.density_root, parts.distribution);
      }
      out.put(row, panel, y);
      if (derivative) derivative->put(row, panel, slope);
    }
    void fetch(int64_t row) const {
      fetch_for_write(out.at(row, panel));
      if (derivative) fetch_for_write(derivative->at(row, panel));
    }
  };
  Sink at(int64_t column) const { return {out, derivative, column / kPanel, bias_panel(bias, column)}; }
  PanelsOf<Form> out;
  std::optional<ActivationDerivativeOf<Form>> derivative;
  const float* bias;
};

template <class Form>
struct Finisher<Form, ScaleToActivations> {
  explicit Finisher(const ScaleToActivations& e) : out(*e.out), factor(*e.factor) {}
  struct Sink {
    PanelsOf<Form> out;
    ActivationDerivativeOf<Form> factor;
    int64_t panel;
    void finish(int64_t row, const Panel& sums) const { out.put(row, panel, sums * factor.get(row, panel)); }
    void fetch(int64_t row) const {
      fetch_for_write(out.at(row, panel));
      __builtin_prefetch(factor.at(row, panel));
    }
  };
  Sink at(int64_t column) const { return {out, factor, column / kPanel}; }
  PanelsOf<Form> out;
  ActivationDerivativeOf<Form> factor;
};

template <class Form>
struct Finisher<Form, StoreHeads> {
  explicit Finisher(const StoreHeads& e) : e(e) {}
  struct Sink {
    typename Form::Element* out;
    const int64_t* rows;
    int64_t plane;
    Panel bias;
    void finish(int64_t row, const Panel& sums) const { Form::put(out + rows[row], plane, sums + bias); }
    void fetch(int64_t row) const { fetch_for_write(out + rows[row]); }
  };
  Sink at(int64_t column) const {
    int64_t within = column;
    int section = 0;
    while (within >= e.sections[section]->columns()) within -= e.sections[section++]->columns();
    const HeadPanelsOf<Form> heads(*e.sections[section]);
    return {heads.column(within), heads.rows, heads.plane, bias_panel(e.bias, column)};
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
