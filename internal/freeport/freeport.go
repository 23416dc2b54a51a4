// Package freeport finds ports on which nobody listens, for programs that must
// know an address before somebody else listens on it.
//
// It imports the standard library only.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// The ports that are tried lie below those that systems give to connections on
// their own account (RFC 6335 §6; Linux from 32768): a connection may take such
// a port between the finding and the listening, even one to that very port.
const (
	first = 16384
	last  = 32767
	tries = 100
)

// Loopback returns HOST:PORT of a port of 127.0.0.1 that is free now. Until this
// process ends nobody else finds it by this package.
func Loopback() (string, error) {
	port, err := Port()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// Port returns the port of Loopback.
func Port() (int, error) {
	var refused error
	for range tries {
		port := first + rand.IntN(last-first+1)
		if refused = reserve(port); refused != nil {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		refused = err
	}
	return 0, errors.Join(errors.New("no free port found on 127.0.0.1"), refused)
}

// reserve has a port belong to this process until it ends: by an abstract socket
// (unix(7)), of which there is one of a name in a network namespace, as of ports.
func reserve(port int) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("reserve port %d: %w", port, err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@weft-port-%d", port)}); err != nil {
		return errors.Join(fmt.Errorf("port %d is another's: %w", port, err), syscall.Close(fd))
	}
	return nil // open for good
}
