#include "aha/server/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "aha/base/error.h"

namespace aha {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRequestsOfAConnection = 1000;
constexpr int64_t kBodiesInMemory = 8;  // of the largest size
constexpr const char* kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Content-Type: application/json\r\nContent-Length: 36\r\n\r\n{\"error\":\"too many connections now\"}";

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Waits in short pieces, so that a stopping server need not wait for its clients.
bool ready(int socket, short events, Clock::time_point until, const std::atomic<bool>& stopping) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0 || stopping) return false;
    pollfd one{socket, events, 0};
    const int found = ::poll(&one, 1, static_cast<int>(std::min<int64_t>(left, 200)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return false;
  }
}

class Connection : public httplib::Stream {
 public:
  Connection(int socket, const ServerLimits& limits, const std::atomic<bool>& stopping,
             std::shared_ptr<std::atomic<int64_t>> body_bytes)
      : socket_(socket), limits_(limits), stopping_(stopping), body_bytes_(std::move(body_bytes)) {}

  bool reserve(int64_t bytes) {
    if (body_bytes_->fetch_add(bytes) + bytes > kBodiesInMemory * (int64_t{limits_.upload_mb} << 20)) {
      *body_bytes_ -= bytes;
      return false;
    }
    body_ = std::shared_ptr<void>(nullptr, [all = body_bytes_, bytes](void*) { *all -= bytes; });
    return true;
  }

  // Whether another request begins in time.
  bool wait_for_request() {
    if (first_ == last_ &&
        !ready(socket_, POLLIN, Clock::now() + duration_of(limits_.idle_seconds), stopping_))
      return false;
    until_ = Clock::now() + duration_of(limits_.request_seconds);
    close_after_ = false;
    body_ = nullptr;
    return true;
  }

  bool is_readable() const override {
    pollfd one{socket_, POLLIN, 0};
    return first_ < last_ || ::poll(&one, 1, 0) > 0;
  }
  bool is_writable() const override {
    pollfd one{socket_, POLLOUT, 0};
    return !stopping_ && ::poll(&one, 1, 0) > 0 && (one.revents & (POLLERR | POLLHUP)) == 0;
  }

  ssize_t read(char* to, size_t size) override {
    if (first_ == last_) {
      if (!ready(socket_, POLLIN, until_, stopping_)) return -1;
      const ssize_t got = ::recv(socket_, buffer_, sizeof buffer_, 0);
      if (got <= 0) return got;
      first_ = 0;
      last_ = static_cast<size_t>(got);
    }
    const size_t some = std::min(size, last_ - first_);
    std::copy_n(buffer_ + first_, some, to);
    first_ += some;
    return static_cast<ssize_t>(some);
  }

  // All of it, or an error.
  ssize_t write(const char* from, size_t size) override {
    const auto until = Clock::now() + duration_of(limits_.request_seconds);
    for (size_t sent = 0; sent < size;) {
      const ssize_t some = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (some > 0)
        sent += static_cast<size_t>(some);
      else if (some < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
        return -1;
      else if (!ready(socket_, POLLOUT, until, stopping_))
        return -1;
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

  bool gone() const {
    pollfd one{socket_, POLLRDHUP, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }

  // A client that is still sending would lose the answer if the socket were closed at once.
  void close(bool politely) {
    ::shutdown(socket_, SHUT_WR);
    const auto until = Clock::now() + std::chrono::seconds(2);
    while (politely && ready(socket_, POLLIN, until, stopping_) &&
           ::recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT) > 0) {
    }
    ::close(socket_);
  }

  bool close_after_ = false;
  std::shared_ptr<void> body_;  // room for the body of this request

 private:
  const int socket_;
  const ServerLimits& limits_;
  const std::atomic<bool>& stopping_;
  const std::shared_ptr<std::atomic<int64_t>> body_bytes_;
  Clock::time_point until_ = {};
  char buffer_[16384];
  size_t first_ = 0, last_ = 0;  // what was received and not yet read
};

thread_local Connection* t_connection = nullptr;
thread_local bool t_too_many = false;

// A thread for each connection, made when it is needed and kept.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int most) : most_(most) {}

  void enqueue(std::function<void()> connection) override {
    {
      const std::lock_guard lock(guard_);
      if (busy_ < most_) {
        ++busy_;
        waiting_.push_back(std::move(connection));
        if (std::ssize(threads_) < busy_) threads_.emplace_back([this] { run(); });
        changed_.notify_one();
        return;
      }
    }
    t_too_many = true;
    connection();
    t_too_many = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(guard_);
      stopping_ = true;
      changed_.notify_all();
    }
    for (auto& thread : threads_) thread.join();
  }

 private:
  void run() {
    std::unique_lock lock(guard_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      auto connection = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      connection();
      connection = nullptr;
      lock.lock();
      --busy_;
    }
  }

  const int most_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  int64_t busy_ = 0;
  bool stopping_ = false;
};

}  // namespace

void close_after_answer() {
  if (t_connection) t_connection->close_after_ = true;
}

bool client_gone() {
  return t_connection && t_connection->gone();
}

bool reserve_body(int64_t bytes) {
  return !t_connection || t_connection->reserve(bytes);
}

std::shared_ptr<void> reserved_body() {
  return t_connection ? t_connection->body_ : nullptr;
}

HttpServer::HttpServer(const ServerLimits& limits) : limits_(limits) {
  new_task_queue = [this] { return new ConnectionThreads(limits_.connections); };
  set_payload_max_length(static_cast<size_t>(limits_.upload_mb) << 20);
  set_tcp_nodelay(true);
  // httplib's own choice, SO_REUSEPORT, would share the port with another server unnoticed.
  set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  set_keep_alive_max_count(kRequestsOfAConnection);
  set_keep_alive_timeout(static_cast<time_t>(limits_.idle_seconds));
}

int HttpServer::bind(const std::string& host, int port) {
  const int found = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
  if (found < 0)
    throw work_error("cannot listen on {} port {}: it is taken or not of this machine; --port 0 takes any",
                     host, port);
  ::listen(svr_sock_, 512);  // httplib's 5 makes clients that come together wait a second
  return found;
}

void HttpServer::serve() {
  listen_after_bind();
}

void HttpServer::stop_all() {
  stopping_ = true;
  stop();
}

bool HttpServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, limits_, stopping_, body_bytes_);
  if (t_too_many) {
    // On the thread that accepts: only for a moment.
    std::atomic<bool> no = false;
    char request[4096];
    if (ready(socket, POLLIN, Clock::now() + std::chrono::milliseconds(20), no))
      (void)!::recv(socket, request, sizeof request, MSG_DONTWAIT);
    (void)!::send(socket, kTooMany, std::char_traits<char>::length(kTooMany), MSG_NOSIGNAL | MSG_DONTWAIT);
    connection.close(false);
    return false;
  }
  t_connection = &connection;
  bool politely = false;
  for (int request = 1; request <= kRequestsOfAConnection && connection.wait_for_request(); ++request) {
    bool closed = false;
    const bool answered = process_request(connection, request == kRequestsOfAConnection, closed, nullptr);
    politely = connection.close_after_;
    if (!answered || closed || politely) break;
  }
  t_connection = nullptr;
  connection.close(politely);
  return true;
}

}  // namespace aha
