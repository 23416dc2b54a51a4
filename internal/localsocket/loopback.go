package localsocket

import (
	"net"
	"net/netip"
	"strings"
)

// Loopback reports whether a host, a name or an address, with a port or without,
// is this machine: only processes of this machine reach what listens there.
func Loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}
