/* TPA over UDP, with the manners of the socket functions. Generated: do not edit.
 *
 * After fork, sockets stay with the parent. In the child every function returns -1 with EBADF for a socket of the parent, tpa_close
 * included, also if only its options were set. It returns at once, sends nothing and leaves the parent's connection alone. The child
 * makes sockets of its own with tpa_socket, and opens its own connections. It has no copies of the parent's UDP ports and of the
 * descriptors of tpa_pollfd. A child of vfork or clone may call none of these functions. */

#ifndef MESHPACE_H
#define MESHPACE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * The level of the options below; SOL_SOCKET is that of SO_RCVTIMEO, SO_SNDTIMEO, SO_LINGER, SO_RCVBUF, SO_SNDBUF and SO_ERROR.
 */
#define SOL_TPA 21584

/**
 * int: whether calls return EAGAIN, and tpa_connect EINPROGRESS, instead of waiting. Default 0.
 */
#define TPA_NONBLOCK 1

/**
 * char[]: the transport, a TPA of `meshpace transports`. Before tpa_bind and tpa_connect. Default "tpa-2".
 */
#define TPA_TRANSPORT 2

/**
 * int: bytes of payload in a full segment, 64 to 65463. Before tpa_bind and tpa_connect. Default 1460, or what fits the way.
 */
#define TPA_SEGMENT 3

/**
 * int: 1 for no encryption, for experiments. Before tpa_bind and tpa_connect. Default 0: encrypted with whoever answers.
 */
#define TPA_PLAIN 4

/**
 * 32 bytes: a secret that both ends know. Before tpa_bind and tpa_connect.
 */
#define TPA_SECRET 5

/**
 * 32 bytes: our private key (X25519); with TPA_PEERS. Before tpa_bind and tpa_connect. Cannot be read back.
 */
#define TPA_KEY 6

/**
 * Public keys of the peers, 32 bytes each; who connects knows exactly one. Before tpa_bind and tpa_connect. While the socket listens it can be
 * changed, also to no key at all: the list holds for those who connect from then on, and a peer whose key is not on it gets ECONNREFUSED
 * within a round trip.
 */
#define TPA_PEERS 7

/**
 * 32 bytes, to be read: the public key of TPA_KEY.
 */
#define TPA_PUBLIC_KEY 8

/**
 * int, milliseconds: silence after which the peer is asked for a sign of life; 0 for never. Before tpa_bind and tpa_connect. Default
 * 30000.
 */
#define TPA_KEEP_ALIVE 9

/**
 * int, milliseconds: how long a connection may carry no data before it ends; 0 for ever. Before tpa_bind and tpa_connect. Default 0.
 */
#define TPA_IDLE 10

/**
 * int, milliseconds: how long to send without hearing anything from the peer. Before tpa_bind and tpa_connect. Default 120000.
 */
#define TPA_SILENCE 11

/**
 * int, milliseconds: how long to try to connect. Before tpa_bind and tpa_connect. Default 30000.
 */
#define TPA_CONNECT_TIMEOUT 12

/**
 * int: hops to the peer, for adaptive pacing; set before tpa_bind and tpa_connect. Read from a connection: as its peer's last packet
 * seems to have come, 0 if nobody knows.
 */
#define TPA_HOPS 13

/**
 * int, bit/s: the channel's data rate, for adaptive pacing. Before tpa_bind and tpa_connect. Default 2000000.
 */
#define TPA_CHANNEL_RATE 14

/**
 * int, to be read: bytes sent whose arrival is not known yet.
 */
#define TPA_UNACKNOWLEDGED 15

/**
 * int: 1 if what is sent leaves as soon as the protocol lets it: at once while nothing is unacknowledged, else with the acknowledgement.
 * 0 if less than a block of twelve segments waits up to 100 ms for more, or until tpa_flush; small writes then take fewer packets. At any
 * time; accepted sockets have that of the listening one. Default 1.
 */
#define TPA_NODELAY 16

/**
 * 32 bytes, to be read from a connection: the public key of the peer, which has proved that it holds the private one. ENODATA where no keys are
 * known, ENOTCONN until the connection is open.
 */
#define TPA_PEER_KEY 17

/**
 * int, to be read from a socket that listens: connections refused because the peer's key was not in TPA_PEERS.
 */
#define TPA_REFUSED_KEYS 18

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Creates a TPA socket (TPA, table 15). Returns it, or -1: EMFILE if there are too many. From then on exit(3) and the end of main close what is open
 * and wait, for each connection at most as SO_LINGER says, until what was sent has arrived; if it has not, a line on standard error says so.
 */
int tpa_socket(void);

/**
 * Gives a socket a local IPv4 or IPv6 address and UDP port; port 0 is any that is free. Returns 0, or -1: EADDRINUSE if another
 * has it, EADDRNOTAVAIL if the address is not this host's, EAFNOSUPPORT if it is of neither kind, EINVAL if the socket has one.
 *
 * `address` points at `length` readable bytes.
 */
int tpa_bind(int socket,
             const struct sockaddr *address,
             socklen_t length);

/**
 * Connects a socket to an IPv4 or IPv6 address and UDP port and waits until the connection is open. Returns 0, or -1: ECONNREFUSED if
 * nobody listens there or keys do not fit, ETIMEDOUT if nobody answers within TPA_CONNECT_TIMEOUT, ENETUNREACH or EHOSTUNREACH without a
 * route, EISCONN if the socket is connected, EOPNOTSUPP if it listens. With TPA_NONBLOCK it does not wait: EINPROGRESS, then
 * EALREADY; the descriptor of `tpa_pollfd(socket, POLLOUT)` tells when that is over, and SO_ERROR how. EINTR after a signal, unless its handler has SA_RESTART: the
 * socket then goes on connecting in the same way.
 *
 * `address` points at `length` readable bytes.
 */
int tpa_connect(int socket,
                const struct sockaddr *address,
                socklen_t length);

/**
 * Has a bound socket accept connections; when `backlog` of them wait (0 or less: 128), further requests are not
 * answered. Returns 0, or -1: EINVAL if the socket is not bound or is connected.
 */
int tpa_listen(int socket,
               int backlog);

/**
 * Waits for a connection request, for at most SO_RCVTIMEO, and returns a socket for it, and the peer's address if `address` is not
 * null. The socket has default settings, but for TPA_NODELAY. -1: EAGAIN when there is none in time or, with TPA_NONBLOCK, now, EINVAL if the socket does not
 * listen, EBADF once another thread closes it, or EINTR after a signal, unless its handler has SA_RESTART and no SO_RCVTIMEO is set.
 *
 * `address` is null, or `length` points at a length and `address` at that many writable bytes.
 */
int tpa_accept(int socket,
               struct sockaddr *address,
               socklen_t *length);

/**
 * Has what was sent leave although it does not fill a block, and does not wait for its arrival. Without effect unless TPA_NODELAY is 0: nothing
 * waits then. Returns 0, or -1: ENOTCONN.
 */
int tpa_flush(int socket);

/**
 * Closes one direction of a connection or both: SHUT_RD, SHUT_WR or SHUT_RDWR. What was sent before still arrives, and the peer then
 * receives the end; what comes after closing for receiving resets the connection. Returns 0, or -1: ENOTCONN, EINVAL for another
 * `how`.
 */
int tpa_shutdown(int socket,
                 int how);

/**
 * Writes the local address of a socket as getsockname(2) does. Returns 0, or -1: EINVAL if it has none yet.
 *
 * `length` points at a length and `address` at that many writable bytes.
 */
int tpa_getsockname(int socket,
                    struct sockaddr *address,
                    socklen_t *length);

/**
 * Writes the address of the peer as getpeername(2) does. Returns 0, or -1: ENOTCONN.
 *
 * `length` points at a length and `address` at that many writable bytes.
 */
int tpa_getpeername(int socket, struct sockaddr *address, socklen_t *length);

/**
 * A sentence about the last call of this thread that failed, such as which peer refuses and why; empty if none has. It belongs to the library and
 * is good until the next call of this thread that fails.
 */
const char *tpa_error(void);

/**
 * The version of the library, such as "0.1.0". It belongs to the library.
 */
const char *tpa_version(void);

/**
 * A file descriptor that poll, select or epoll report as readable (POLLIN, for either) as long as a call would not wait: with POLLIN for
 * `events` tpa_recv or tpa_accept, with POLLOUT tpa_send, and once it is clear whether the connection is open. It belongs to the
 * socket, closes with it, and is neither read nor written by the caller. -1: EINVAL for other `events`, EMFILE if there are too
 * many descriptors.
 */
int tpa_pollfd(int socket,
               short events);

/**
 * Sets an option. At level SOL_SOCKET: SO_RCVTIMEO and SO_SNDTIMEO (struct timeval), SO_LINGER (struct linger: how long tpa_close
 * waits, 30 s unless set; 0 s has it reset the connection), and before tpa_bind and tpa_connect SO_RCVBUF and SO_SNDBUF (int, bytes, 1 GiB at most). At
 * level SOL_TPA: those named TPA_. Returns 0, or -1: ENOPROTOOPT for an option that cannot be set, EINVAL for a value of the wrong length or
 * out of range, or if it is too late.
 *
 * `value` points at `length` readable bytes.
 */
int tpa_setsockopt(int socket,
                   int level,
                   int option,
                   const void *value,
                   socklen_t length);

/**
 * Reads an option: those of tpa_setsockopt and, at level SOL_SOCKET, SO_ERROR (int: why the connection failed, 0 if it has not;
 * it stays). `length` says how much room there is, and then how long the value is. Returns 0, or -1: ENOPROTOOPT for an option that cannot
 * be read, EINVAL if there is too little room.
 *
 * `length` points at a length and `value` at that many writable bytes.
 */
int tpa_getsockopt(int socket,
                   int level,
                   int option,
                   void *value,
                   socklen_t *length);

/**
 * Closes a socket. A connected one has its end told to the peer, and the call waits, at most 30 s or as SO_LINGER says, until everything
 * sent has arrived; with TPA_NONBLOCK it does not wait, and what was sent arrives as long as the process lives. Returns 0, or -1 with the
 * socket closed all the same: ECONNRESET or ECONNREFUSED if the peer is gone, ETIMEDOUT if not everything arrived in time, EBADF
 * if there is no such socket.
 */
int tpa_close(int socket);

/**
 * Sends `length` bytes; waits, for at most SO_SNDTIMEO, until all have been taken. Returns how many were taken: fewer if the time is up or a
 * signal has come (unless its handler has SA_RESTART and no SO_SNDTIMEO is set), or, with MSG_DONTWAIT or TPA_NONBLOCK, as many as can be now. If none
 * were, -1: EAGAIN, EINTR, ENOTCONN, EPIPE, ECONNRESET, ECONNREFUSED, ETIMEDOUT if the peer falls silent, EMSGSIZE if
 * the path cannot carry segments, EOPNOTSUPP for flags but MSG_DONTWAIT and MSG_NOSIGNAL. Never raises SIGPIPE.
 *
 * `bytes` points at `length` readable bytes.
 */
ssize_t tpa_send(int socket,
                 const void *bytes,
                 size_t length,
                 int flags);

/**
 * Receives up to `length` bytes; waits, for at most SO_RCVTIMEO, until there is at least one. Returns how many, 0 at the end of the peer's
 * stream, or -1: EAGAIN if there is nothing in time or, with MSG_DONTWAIT or TPA_NONBLOCK, now, EINTR after a signal (unless its handler has SA_RESTART
 * and no SO_RCVTIMEO is set), EBADF once another thread closes it, ENOTCONN, ECONNRESET, ECONNREFUSED, ETIMEDOUT, EOPNOTSUPP for flags but
 * MSG_DONTWAIT.
 *
 * `bytes` points at `length` writable bytes.
 */
ssize_t tpa_recv(int socket,
                 void *bytes,
                 size_t length,
                 int flags);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MESHPACE_H */
