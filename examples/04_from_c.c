/* The library from C: which pixels make a bundled network say what it says of one image.
 *
 *   cc 04_from_c.c $(pkg-config --cflags --libs aha) && ./a.out cifar10-vit4 photo.png map.png
 */
#include <aha/aha_c.h>
#include <stdio.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, aha_last_error());
  return 1;
}

int main(int argc, char** argv) {
  const char* const two_threads[] = {"threads", "2", "quiet", "true", NULL};
  const char* const refined[] = {"method", "aha", "refine", "3", NULL};
  aha_session* session = NULL;
  aha_model* model = NULL;
  aha_image* image = NULL;
  const aha_image* images[1];
  aha_explanation* explanation = NULL;
  aha_explained e;
  aha_picture* picture = NULL;
  const uint8_t* png;
  size_t bytes;
  FILE* file;

  if (argc < 4) {
    fprintf(stderr, "usage: %s MODEL IMAGE OUT.png\n", argv[0]);
    return 2;
  }
  if (aha_open(two_threads, &session) != AHA_OK) return failed("session");
  if (aha_load(session, argv[1], NULL, &model) != AHA_OK) return failed("model");
  if (aha_image_read(argv[2], &image) != AHA_OK) return failed("image");
  images[0] = image;
  if (aha_explain(model, images, 1, NULL, refined, &explanation) != AHA_OK) return failed("explain");
  if (aha_explanation_get(explanation, 0, &e) != AHA_OK) return failed("explain");
  printf("class %s, probability %.3f\n", e.class_name, e.probability);
  printf("map of %d x %d, %d steps, insertion %.3f, deletion %.3f (a random map: %.3f, %.3f)\n",
         (int)e.height, (int)e.width, (int)e.steps, e.insertion, e.deletion, e.random_insertion,
         e.random_deletion);

  if (aha_overlay(image, e.map, e.height, e.width, model, NULL, &picture) != AHA_OK) return failed("overlay");
  png = aha_picture_png(picture, &bytes);
  file = fopen(argv[3], "wb");
  if (!file || fwrite(png, 1, bytes, file) != bytes || fclose(file) != 0) {
    perror(argv[3]);
    return 1;
  }
  aha_picture_free(picture);
  aha_explanation_free(explanation);
  aha_image_free(image);
  aha_model_free(model);
  aha_close(session);
  return 0;
}
