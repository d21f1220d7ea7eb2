/* aha for C and for every language that can call C: opaque handles, plain arrays, no torch.
 *
 * Every function that can fail returns aha_kind, AHA_OK where it did not; aha_last_error() is then the
 * message of the calling thread's last failure, the same words that the program prints. Options are pairs of
 * texts, key and value, ended by NULL; keys and values are those of the command line ("refine", "3"), and
 * NULL means none.
 *
 * A handle is freed once, after what was made from it: images and results at any time, models before their
 * session. Calls of one session run one after another, on threads of its own: the floating-point mode, the
 * number of OpenMP threads and the signal handlers of the caller stay as they are. Sessions with different
 * numbers of threads live side by side; their calls take turns.
 */
#ifndef AHA_AHA_C_H
#define AHA_AHA_C_H

#include <stddef.h>
#include <stdint.h>

#include "aha/version.h"

#if defined(__GNUC__)
#define AHA_API __attribute__((visibility("default")))
#else
#define AHA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  AHA_OK = 0,
  AHA_FAILED = 1,  /* the call was right, the work failed */
  AHA_INPUT = 2,   /* the call or an input was wrong */
  AHA_CANCELED = 3 /* aha_cancel(), a poll or a callback asked for it */
} aha_kind;

typedef struct aha_session aha_session;
typedef struct aha_model aha_model;
typedef struct aha_image aha_image;
typedef struct aha_explanation aha_explanation;
typedef struct aha_evaluation aha_evaluation;
typedef struct aha_picture aha_picture;
typedef const char* const* aha_options; /* {"refine", "3", NULL} */

AHA_API const char* aha_version(void);    /* of the library that runs */
AHA_API const char* aha_last_error(void); /* of this thread; until its next failure */

/* What there is, with docs: "methods" or "metrics" as a JSON array, as in `aha models --json`. Lives as long
 * as the process. */
AHA_API aha_kind aha_records(const char* what, const char** json);

/* ---- session: threads, precision (f32, bf16), seed, batch-size, device, quiet, max-megapixels ---- */
AHA_API aha_kind aha_open(aha_options options, aha_session** session);
AHA_API void aha_close(aha_session* session);
/* Ends the call that runs now, from any thread. */
AHA_API void aha_cancel(aha_session* session);
/* Called on the caller's thread ten times a second while a call runs; anything but 0 cancels it. NULL = none.
 */
AHA_API void aha_poll(aha_session* session, int (*poll)(void* user), void* user);

/* ---- model ---- */
/* spec: as --target takes it; options: input-size, mean, std ("0.5,0.5,0.5"). */
AHA_API aha_kind aha_load(aha_session* session, const char* spec, aha_options options, aha_model** model);

/* A classifier of the caller's own. pixels (n, 3, size, size) in [0, 1] -> logits (n, classes). Anything but
 * 0 = it failed. Called from one thread at a time, not the caller's. */
typedef int (*aha_forward)(void* user, const float* pixels, int64_t n, float* logits);
/* weights (n, classes) -> gradient (n, 3, size, size) of sum_c weights_c logit_c by the pixels. */
typedef int (*aha_gradient)(void* user, const float* pixels, const float* weights, int64_t n,
                            float* gradient);
typedef struct {
  const char* name;
  int64_t classes, size;
  aha_forward forward;
  aha_gradient gradient; /* NULL = none: only methods that need no gradient */
  void* user;
} aha_callable;
AHA_API aha_kind aha_wrap(aha_session* session, const aha_callable* callable, aha_model** model);
AHA_API void aha_model_free(aha_model* model);

AHA_API const char* aha_model_name(const aha_model* model);
AHA_API const char* aha_model_architecture(const aha_model* model);
AHA_API int64_t aha_model_classes(const aha_model* model);
AHA_API int64_t aha_model_size(const aha_model* model); /* side of its input in pixels */
/* "" where it has no names, NULL outside 0..classes-1. */
AHA_API const char* aha_model_class_name(const aha_model* model, int64_t index);
/* The methods that fit it, one a line. Lives until the model's next call of this function. */
AHA_API aha_kind aha_model_methods(aha_model* model, const char** names);
/* The method and the options of aha_explain(), checked against the model: AHA_OK where it would begin. */
AHA_API aha_kind aha_model_check(aha_model* model, aha_options options);
/* Images as the model gets them -> pixels (n, 3, size, size), and its logits (n, classes); either may be
 * NULL. */
AHA_API aha_kind aha_classify(aha_model* model, const aha_image* const* images, size_t n, float* pixels,
                              float* logits);

/* ---- images ---- */
/* A photo: resized and cropped as the model's recipe says. */
AHA_API aha_kind aha_image_read(const char* path, aha_image** image);
/* 8-bit red, green, blue; strides in bytes from a row, a column and a channel to the next. Copies. */
AHA_API aha_kind aha_image_from_u8(const uint8_t* first, int64_t height, int64_t width, ptrdiff_t row,
                                   ptrdiff_t column, ptrdiff_t channel, aha_image** image);
/* float32 in [0, 1], what the model gets as it is: height and width are the size of its input. Copies. */
AHA_API aha_kind aha_image_from_f32(const float* first, int64_t height, int64_t width, ptrdiff_t row,
                                    ptrdiff_t column, ptrdiff_t channel, aha_image** image);
/* What messages call it, and what its random numbers depend on; a file's is its path, others are "image". */
AHA_API aha_kind aha_image_rename(aha_image* image, const char* name);
AHA_API void aha_image_free(aha_image* image);

/* ---- explain ---- */
typedef struct {
  const float* map; /* (height, width), higher = more important; lives as long as the explanation */
  int64_t height, width;
  int64_t class_index;
  const char* class_name;
  double probability;                       /* of the class */
  double deletion, insertion;               /* NaN where no score was asked for */
  double random_deletion, random_insertion; /* of a random map: the floor */
  int64_t steps;                            /* of refinement */
  double loss;                              /* of the last of these steps; NaN where there was none */
  double forwards, backwards;               /* passes of the model that the map took */
  double seconds;                           /* of the map alone */
} aha_explained;
/* classes: one for each image, NULL = as the option class says ("predicted", an index or a name). Further
 * options: method, refine, budget, explainer, encoder, score. */
AHA_API aha_kind aha_explain(aha_model* model, const aha_image* const* images, size_t n,
                             const int64_t* classes, aha_options options, aha_explanation** explanation);
AHA_API aha_kind aha_explanation_get(const aha_explanation* explanation, size_t image, aha_explained* one);
/* All maps as one array (images, height, width), where the maps of aha_explained are, too. */
AHA_API aha_kind aha_explanation_maps(const aha_explanation* explanation, const float** maps, int64_t* images,
                                      int64_t* height, int64_t* width);
AHA_API void aha_explanation_free(aha_explanation* explanation);

/* ---- evaluate maps of any tool ---- */
typedef struct {
  double mean, low, high; /* bootstrap over images, 95 % unless the option ci says otherwise */
  int64_t images;         /* measured */
} aha_interval;
typedef struct {
  double mean, low, high; /* of a - b, paired by image */
  double p_value;         /* two-sided, by flipping signs */
  double win_rate;        /* share of images with a > b; ties count half */
  int64_t images;
} aha_difference;
/* maps[m]: (n, height, width) contiguous, any size (resized to the input), higher = more important; names[m]
 * says whose. classes: NULL = the predicted ones. Options: metrics, references, protocol, steps, area, ties,
 * score, ci. */
AHA_API aha_kind aha_evaluate(aha_model* model, const aha_image* const* images, size_t n,
                              const int64_t* classes, const char* const* names, const float* const* maps,
                              size_t methods, int64_t height, int64_t width, aha_options options,
                              aha_evaluation** evaluation);
AHA_API size_t aha_evaluation_metrics(const aha_evaluation* evaluation); /* parts of differences among them */
AHA_API const char* aha_evaluation_metric(const aha_evaluation* evaluation, size_t metric);
AHA_API int aha_evaluation_higher_is_better(const aha_evaluation* evaluation, size_t metric);
AHA_API aha_kind aha_evaluation_get(const aha_evaluation* evaluation, size_t metric, size_t method,
                                    aha_interval* value);
/* One for each image, NaN where it was not measured (a constant map of any method leaves its image out). */
AHA_API aha_kind aha_evaluation_values(const aha_evaluation* evaluation, size_t metric, size_t method,
                                       const double** values);
AHA_API aha_kind aha_evaluation_difference(const aha_evaluation* evaluation, size_t metric, size_t a,
                                           size_t b, aha_difference* difference);
/* What to be careful about and what was left out, one a line. */
AHA_API const char* aha_evaluation_remarks(const aha_evaluation* evaluation);
/* maps (n, height, width) -> resized (n, size, size), size that of the model: as aha_evaluate() sees them. */
AHA_API aha_kind aha_maps_resize(aha_model* model, const float* maps, int64_t n, int64_t height,
                                 int64_t width, float* resized);
AHA_API void aha_evaluation_free(aha_evaluation* evaluation);

/* ---- train ---- */
typedef struct {
  const char* what;    /* "train"; what is being done */
  const char* note;    /* what was found last */
  int64_t done, total; /* total 0 = not known */
} aha_progress;
typedef struct {
  int64_t steps, images, unreadable;
  double insertion, deletion; /* on held-out images */
  double seconds;
} aha_trained;
/* An explainer for a model that aha_load() made, into the folder `out`. data: as --data takes it. Options are
 * those of `aha train`, without workers. Anything but 0 of `each` cancels; it may be NULL, as may `trained`.
 */
AHA_API aha_kind aha_train(aha_model* model, const char* data, const char* out, aha_options options,
                           int (*each)(void* user, const aha_progress* progress), void* user,
                           aha_trained* trained);

/* ---- pictures ---- */
/* A map's colors over an image, or alone where image is NULL. With a model and a photo, the map covers the
 * part that the model sees. Options: colors, scale, opacity, contours. */
AHA_API aha_kind aha_overlay(const aha_image* image, const float* map, int64_t height, int64_t width,
                             const aha_model* model, aha_options options, aha_picture** picture);
AHA_API void aha_picture_size(const aha_picture* picture, int64_t* height, int64_t* width);
AHA_API const uint8_t* aha_picture_rgb(const aha_picture* picture); /* (height, width, 3) */
AHA_API const uint8_t* aha_picture_png(const aha_picture* picture, size_t* bytes);
AHA_API void aha_picture_free(aha_picture* picture);

#ifdef __cplusplus
}
#endif

#endif
