package shm

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// doorbell is an end of a pair of sockets: each side rings the other's. Octets
// on it mean nothing: Go's poller tells of each that comes, whether or not those
// before it have been read. It is no eventfd, to which a peer could have a write
// wait for ever; a socket takes or refuses at once, whatever the peer has done to
// it.
type doorbell struct {
	file  *os.File
	raw   syscall.RawConn
	rings atomic.Uint32 // that were due and nobody waited for
}

// maxUnread is how many octets are left unread: fewer than the smallest buffer
// of a socket holds.
const maxUnread = 64

// newDoorbells returns one end of a new pair, and the other as a file
// descriptor.
func newDoorbells() (here *doorbell, there int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	if here, err = openDoorbell(pair[0]); err != nil {
		return nil, -1, errors.Join(err, unix.Close(pair[1]))
	}
	return here, pair[1], nil
}

// openDoorbell takes a file descriptor, which a peer may have sent.
func openDoorbell(fd int) (*doorbell, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(fd))
	}
	d := &doorbell{file: os.NewFile(uintptr(fd), "doorbell")}
	var err error
	if d.raw, err = d.file.SyscallConn(); err == nil {
		err = d.file.SetReadDeadline(time.Time{}) // fails for what cannot be waited for
	}
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// ring wakes the peer if it waits. If there is no room, it has not read for
// long, and octets that it has not heard are there.
func (d *doorbell) ring() {
	_ = d.raw.Control(func(fd uintptr) {
		_ = unix.Sendto(int(fd), []byte{0}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
	})
}

// wait waits until enough returns true: it is asked at once, and after each
// ring. After silence and close it returns an error.
func (d *doorbell) wait(enough func() bool) error {
	woken := false
	return d.raw.Read(func(fd uintptr) bool {
		if woken {
			drain(fd)
		}
		woken = true
		return enough()
	})
}

// drain reads what is there.
func drain(fd uintptr) {
	var b [4 * maxUnread]byte
	_, _, _ = unix.Recvfrom(int(fd), b[:], unix.MSG_DONTWAIT) // there may be nothing
}

// heard is to be called for each ring that was due and nobody waited for.
func (d *doorbell) heard() {
	if d.rings.Add(1)%maxUnread != 0 {
		return
	}
	_ = d.raw.Control(drain)
}

// silence ends all waiting, now and later.
func (d *doorbell) silence() {
	_ = d.file.SetReadDeadline(time.Unix(1, 0)) // fails if it is closed
}

func (d *doorbell) close() {
	_ = d.file.Close() // nobody needs the error
}
