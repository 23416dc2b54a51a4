package localsocket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
)

// Peers returns a listener whose connections know the user at their other end:
// UserAt accepts their RemoteAddr, also through wrappers and TLS.
func Peers(l net.Listener) net.Listener { return peers{l} }

type peers struct{ net.Listener }

// Accept returns the next connection (net.Listener).
func (p peers) Accept() (net.Conn, error) {
	conn, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &peer{Conn: conn, addr: &addr{conn.RemoteAddr(), sync.OnceValues(func() (int, error) { return Owner(conn) })}}, nil
}

// peer is a connection that knows the user at its other end.
type peer struct {
	net.Conn
	addr *addr
}

// RemoteAddr returns the address of the other end (net.Conn).
func (p *peer) RemoteAddr() net.Addr { return p.addr }

// NetConn returns the connection below.
func (p *peer) NetConn() net.Conn { return p.Conn }

type addr struct {
	net.Addr
	owner func() (int, error) // asks the kernel once
}

// UserAt returns the user of the process that made a connection; a is the
// RemoteAddr of a connection of a Peers listener.
func UserAt(a net.Addr) (uid int, err error) {
	p, ok := a.(*addr)
	if !ok {
		return 0, errors.New("it is not known where it comes from")
	}
	return p.owner()
}

// Own reports whether a user runs this process, or is root.
func Own(uid int) bool {
	return uid == 0 || uid == os.Geteuid() && !shared(uid)
}

// shared reports whether a user id stands for all users of other user
// namespaces (user_namespaces(7)).
func shared(uid int) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.Itoa(uid) {
		return false
	}
	all, err := os.ReadFile("/proc/self/uid_map")
	return err != nil || strings.Join(strings.Fields(string(all)), " ") != "0 0 4294967295"
}

// UserID returns the number of a user, by name or number.
func UserID(name string) (uid int, err error) {
	if n, err := strconv.ParseUint(name, 10, 31); err == nil {
		return int(n), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("user %.80q is not known on this machine; write a name of /etc/passwd, or a number", name)
	}
	return strconv.Atoi(u.Uid)
}

// Proxied returns the name of a header that a proxy adds; empty if there is
// none. The kernel cannot tell on whose behalf a proxy makes a request.
func Proxied(header map[string][]string) string {
	for name := range header {
		lower := strings.ToLower(name)
		switch {
		case lower == "forwarded", lower == "via", lower == "x-real-ip", lower == "proxy-authorization", lower == "client-ip", lower == "true-client-ip",
			strings.HasPrefix(lower, "x-forwarded"), strings.HasPrefix(lower, "x-original-"), strings.HasPrefix(lower, "x-envoy-"), strings.HasPrefix(lower, "cf-connecting-"):
			return name
		}
	}
	return ""
}
