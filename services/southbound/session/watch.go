package session

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// watch finds the switches that have sent something, reads from them and
// answers their echoes before the goroutines of their sessions run: near
// saturation these wait for each other, and Go's scheduler knows no priorities.
// It looks whenever the runtime finds something to read, and between
// packet-ins, on the goroutine that handles them, once lookEvery is over. It
// opens no epoll instance before its first connection.
type watch struct {
	opened chan struct{} // closed when there is an epoll instance
	last   atomic.Int64
	some   atomic.Bool // there are members

	mu      sync.Mutex // guards what follows; held while looking
	over    bool
	file    *os.File // the epoll instance, so that the runtime waits for it; nil until open
	epoll   int
	members map[int32]*early
	next    int32
	events  []unix.EpollEvent
}

// lookEvery is how long echoes may wait for packet-ins: less would read in
// smaller pieces, which costs more.
const lookEvery = 2 * time.Millisecond

// lookPackets is how many messages are handled between two looks at the clock.
const lookPackets = 16

func newWatch() *watch {
	return &watch{opened: make(chan struct{}), members: map[int32]*early{}, events: make([]unix.EpollEvent, 256)}
}

// open makes the epoll instance. The caller holds the lock.
func (w *watch) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("southbound: epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return fmt.Errorf("southbound: epoll: %w", err)
	}
	w.file, w.epoll = os.NewFile(uintptr(fd), "epoll"), fd
	close(w.opened)
	return nil
}

// add starts watching a connection.
func (w *watch) add(e *early) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return net.ErrClosed
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	for w.next++; w.members[w.next] != nil; w.next++ {
	}
	id := w.next
	var failed error
	err := e.raw.Control(func(fd uintptr) {
		failed = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET, Fd: id})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	e.id = id
	w.members[id] = e
	w.some.Store(true)
	return nil
}

// remove stops watching a connection. epoll forgets a closed one by itself.
func (w *watch) remove(e *early) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	delete(w.members, e.id)
	w.some.Store(len(w.members) > 0)
	_ = e.raw.Control(func(fd uintptr) { _ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) })
}

// busy reports whether any connection is watched.
func (w *watch) busy() bool { return w != nil && w.some.Load() }

// tick looks if it is time to and nobody else is looking.
func (w *watch) tick(now int64) {
	if !w.busy() || now-w.last.Load() < int64(lookEvery) || !w.mu.TryLock() {
		return
	}
	w.look(now)
	w.mu.Unlock()
}

// look reads what has arrived; mu is held.
func (w *watch) look(now int64) {
	w.last.Store(now)
	for !w.over {
		n, err := epollNow(w.epoll, w.events)
		if err == unix.EINTR {
			continue
		}
		if err != 0 {
			return
		}
		for i := range w.events[:n] {
			if e := w.members[w.events[i].Fd]; e != nil {
				e.look(now, w.events[i].Events)
			}
		}
		if n < len(w.events) {
			return
		}
	}
}

// close ends the watch.
func (w *watch) close() {
	w.mu.Lock()
	w.over = true
	file := w.file
	w.mu.Unlock()
	if file != nil {
		file.Close() // without the lock: Close waits for the goroutine that looks
	}
}

// run looks whenever something arrives, until ctx ends.
func (w *watch) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, w.close)()
	select {
	case <-w.opened:
	case <-ctx.Done():
		w.close()
		return nil
	}
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	err = raw.Read(func(uintptr) bool {
		w.mu.Lock()
		w.look(time.Now().UnixNano())
		w.mu.Unlock()
		return false
	})
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("southbound: epoll: %w", err)
}
