package shm

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The memory of a connection is a page with the positions of both rings, and the
// rings: first that from the listening side to the dialing one, then the other.
const (
	pageSize   = 4096
	ringSize   = 256 << 10 // a power of two
	memorySize = pageSize + 2*ringSize
)

// seals are those that the memory must have: nobody can take pages away that
// are mapped, which would end a process by SIGBUS.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW

// newMemory returns a file of new memory.
func newMemory() (fd int, err error) {
	fd, err = unix.MemfdCreate("weft-shm", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	err = unix.Ftruncate(fd, memorySize)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// mapMemory maps a file, after checking that it is memory that stays.
func mapMemory(fd int) ([]byte, error) {
	has, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil {
		return nil, fmt.Errorf("what the peer shares is no memory: %w", err)
	}
	if has&seals != seals {
		return nil, errors.New("the memory that the peer shares is not sealed against being cut short")
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	if st.Size != memorySize {
		return nil, fmt.Errorf("the peer shares %d octets of memory; want %d", st.Size, memorySize)
	}
	m, err := unix.Mmap(fd, 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return m, os.NewSyscallError("mmap", err)
}

// side is which end of a connection this process is.
type side int

const (
	listening side = iota
	dialing
)

// rings returns the rings of mapped memory: that which a side reads, and that
// which it writes.
func rings(m []byte, s side) (in, out ring) {
	at := func(n int) ring {
		const span = pageSize / 2
		start := pageSize + n*ringSize
		return ring{
			positions: (*positions)(unsafe.Pointer(&m[n*span])),
			data:      m[start : start+ringSize : start+ringSize],
		}
	}
	if s == dialing {
		return at(0), at(1)
	}
	return at(1), at(0)
}
