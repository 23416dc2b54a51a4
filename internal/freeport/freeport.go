// Package freeport finds ports on which nobody listens, for programs that must
// know an address before somebody else listens on it.
//
// It imports the standard library only.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports that are tried lie below those that systems give to connections on
// their own account (RFC 6335 §6; Linux from 32768): a connection may take such
// a port between the finding and the listening, even one to that very port.
const (
	first = 16384
	last  = 32767
	tries = 100
)

// Loopback returns HOST:PORT of a port of 127.0.0.1 that is free now.
func Loopback() (string, error) {
	var refused error
	for range tries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(last-first+1)))
		l, err := net.Listen("tcp", address)
		if err == nil {
			return address, l.Close()
		}
		refused = err
	}
	return "", errors.Join(errors.New("no free port found on 127.0.0.1"), refused)
}
