package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
)

// tidyGateway completes what is let in.
func tidyGateway(m proto.Message) {
	g := m.(*api.NatGateway)
	for _, f := range g.Forwards {
		first, _, _ := strings.Cut(g.Pool, "-")
		f.Address, f.ToPort = cmp.Or(f.Address, first), cmp.Or(f.ToPort, f.Port)
	}
}

// readPorts reads FIRST-LAST, or one port.
func readPorts(flag string, to protoreflect.Message, text string) error {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, err := natPort(first)
	b, err2 := natPort(last)
	if err != nil || err2 != nil {
		return fmt.Errorf("--%s %s: want FIRST-LAST, 1 to 65535", flag, text)
	}
	g := to.Interface().(*api.NatGateway)
	g.FirstPort, g.LastPort = a, b
	return nil
}

func natPort(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err == nil && n == 0 {
		err = fmt.Errorf("port 0")
	}
	return uint32(n), err
}

// readForward reads PROTOCOL:[ADDRESS:]PORT=HOST[:PORT]; an IPv6 address with a
// port stands in brackets.
func readForward(s string) (*api.NatForward, error) {
	wrong := fmt.Errorf("%s: want PROTOCOL:[ADDRESS:]PORT=HOST[:PORT], such as tcp:80=10.0.0.3:8080 or tcp:[2001:db8::1]:80=[fd00::3]:8080", s)
	head, to, ok := strings.Cut(s, "=")
	protocol, from, ok2 := strings.Cut(head, ":")
	if !ok || !ok2 {
		return nil, wrong
	}
	f := &api.NatForward{Protocol: protocol}
	if at, err := netip.ParseAddrPort(from); err == nil {
		f.Address, from = at.Addr().String(), strconv.Itoa(int(at.Port()))
	}
	var err error
	if f.Port, err = natPort(from); err != nil {
		return nil, wrong
	}
	if host, err := netip.ParseAddr(to); err == nil {
		f.To = host.String()
		return f, nil
	}
	host, err := netip.ParseAddrPort(to)
	if err != nil || host.Port() == 0 {
		return nil, wrong
	}
	f.To, f.ToPort = host.Addr().String(), uint32(host.Port())
	return f, nil
}
