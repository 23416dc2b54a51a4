// Package netspace opens sockets in named network namespaces (ip-netns(8)), as
// hosts of a lab are. A socket stays in the namespace in which it was opened,
// whoever uses it. Where the process may not enter the namespace, the part of the
// controller that is root (package rootpart) opens the socket for it.
package netspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/ownthread"
	"github.com/weft-sdn/weft/internal/rootpart"
)

// directory is where ip-netns(8) keeps named namespaces.
const directory = "/run/netns"

// dialTime bounds how long a connection may take to come about.
const dialTime = 5 * time.Second

var name = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// Check refuses what cannot be the name of a namespace. An empty name is the
// namespace of the process.
func Check(namespace string) error {
	if namespace != "" && !name.MatchString(namespace) {
		return fmt.Errorf("%.80q: want the name of a network namespace, as ip netns list shows it", namespace)
	}
	return nil
}

// Inode tells namespaces of one name, after each other, apart. It is 0 if there is
// none, and for the namespace of the process.
func Inode(namespace string) uint64 {
	var is unix.Stat_t
	if Check(namespace) != nil || namespace == "" || unix.Stat(filepath.Join(directory, namespace), &is) != nil {
		return 0
	}
	return is.Ino
}

// Listen listens for TCP connections at an address in a namespace.
func Listen(ctx context.Context, namespace string, at netip.AddrPort) (net.Listener, error) {
	if namespace == "" {
		return new(net.ListenConfig).Listen(ctx, "tcp", at.String())
	}
	f, err := socket(ctx, request{Namespace: namespace, Listen: at})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f)
}

// Dial connects by TCP to an address in a namespace. With an address from, the
// connection comes from there.
func Dial(ctx context.Context, namespace string, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	if namespace == "" {
		return dialer(from).DialContext(ctx, "tcp", to.String())
	}
	f, err := socket(ctx, request{Namespace: namespace, From: from, Dial: to})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileConn(f)
}

func dialer(from netip.Addr) *net.Dialer {
	d := &net.Dialer{Timeout: dialTime}
	if from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	return d
}

// request is a socket that is wanted: one that listens, or one that is connected.
type request struct {
	Namespace string         `json:"namespace"`
	Listen    netip.AddrPort `json:"listen,omitzero"`
	From      netip.Addr     `json:"from,omitzero"`
	Dial      netip.AddrPort `json:"dial,omitzero"`
}

// verbSocket asks the part of the controller that is root for a socket.
const verbSocket = "socket"

// lab is what the names of labs' namespaces begin with.
const lab = "weft-"

// Rights returns the verb by which processes that may not enter namespaces get
// sockets in those of labs that the controller was started with.
func Rights(namespaces []string) map[string]rootpart.Verb {
	return map[string]rootpart.Verb{verbSocket: func(ctx context.Context, text json.RawMessage) (any, error) {
		var r request
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(r.Namespace, lab) {
			return nil, fmt.Errorf("network namespace %.80q is not a lab's; for any other, start weft with --user root", r.Namespace)
		}
		if !slices.Contains(namespaces, r.Namespace) {
			return nil, fmt.Errorf("network namespace %.80q is none that the controller was started with; name it by scp.namespace in the plan, --config or --set of weft up itself", r.Namespace)
		}
		return open(ctx, r)
	}}
}

// zoned reports an address with an IPv6 zone, which is a text of the asker's.
func (r request) zoned() bool {
	return r.Listen.Addr().Zone() != "" || r.From.Zone() != "" || r.Dial.Addr().Zone() != ""
}

func socket(ctx context.Context, r request) (*os.File, error) {
	if err := Check(r.Namespace); err != nil {
		return nil, err
	}
	if path := rootpart.Path(); path != "" {
		return rootpart.AskFile(ctx, path, verbSocket, r)
	}
	return open(ctx, r)
}

// open opens the socket, on a thread that ends with it: no other work may ever
// find itself in the namespace.
func open(ctx context.Context, r request) (file *os.File, err error) {
	if !name.MatchString(r.Namespace) {
		return nil, fmt.Errorf("%.80q is not the name of a network namespace", r.Namespace)
	}
	if r.zoned() {
		return nil, errors.New("an address with an interface's name (%NAME) cannot be used in another network namespace")
	}
	ownthread.Run(func() { file, err = openHere(ctx, r) })
	return file, err
}

func openHere(ctx context.Context, r request) (*os.File, error) {
	if err := enter(r.Namespace); err != nil {
		return nil, err
	}
	switch {
	case r.Listen.IsValid():
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", r.Listen.String())
		if err != nil {
			return nil, fmt.Errorf("in network namespace %s: %w", r.Namespace, err)
		}
		defer l.Close()
		return l.(*net.TCPListener).File()
	case r.Dial.IsValid():
		c, err := dialer(r.From).DialContext(ctx, "tcp", r.Dial.String())
		if err != nil {
			return nil, fmt.Errorf("in network namespace %s: %w", r.Namespace, err)
		}
		defer c.Close()
		return c.(*net.TCPConn).File()
	}
	return nil, errors.New("no address to listen at, and none to connect to")
}

// enter brings the thread into a namespace that is not its own.
func enter(namespace string) error {
	path := filepath.Join(directory, namespace)
	f, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("there is no network namespace %s (ip netns list shows those there are)", namespace)
	case err != nil:
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	defer f.Close()
	var there, here unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &there), unix.Stat("/proc/thread-self/ns/net", &here)); err != nil {
		return fmt.Errorf("network namespace %s: %w", namespace, err)
	}
	if there.Dev == here.Dev && there.Ino == here.Ino {
		return fmt.Errorf("network namespace %s is that of the controller itself", namespace)
	}
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w; start weft as root", namespace, err)
	}
	return nil
}
