package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"
)

// scratches is memory of services that outlives the process: mapped files,
// which the operating system keeps when the process is killed.
type scratches struct {
	dir     string // empty: the memory ends with the process
	process string

	mu     sync.Mutex
	mapped map[string][]byte // by file; lasts as long as the process, and so do the locks
}

// open returns the memory of a service as the last process of this name left
// it; at first it is zero.
func (s *scratches) open(service, name string, size int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.process + "." + service + "." + name
	if m := s.mapped[file]; len(m) == size {
		return m, nil
	}
	var m []byte
	var err error
	if s.dir != "" {
		m, err = mapFile(filepath.Join(s.dir, file), size)
	}
	if m == nil {
		m = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))), size)
	}
	if s.mapped == nil {
		s.mapped = map[string][]byte{}
	}
	s.mapped[file] = m
	return m, err
}

// mapFile maps a file and locks it while this process lives; it makes a missing
// file.
func mapFile(path string, size int) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = syscall.Ftruncate(fd, int64(size))
	}
	var m []byte
	if err == nil {
		m, err = syscall.Mmap(fd, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err == nil {
		return m, nil // fd stays open, and with it the lock
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another process of the same name uses it")
	}
	return nil, errors.Join(fmt.Errorf("map %s: %w", path, err), syscall.Close(fd))
}

// Scratch returns memory that outlives the process.
func (s *Service) Scratch(name string, size int) ([]byte, error) {
	return s.worker.scratches.open(s.Prefix+s.Spec.Name, name, size)
}
