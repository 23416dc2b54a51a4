package lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
)

// TestManagedHosts looks at managed hosts on this machine as it is, and on one
// that forwards packets and asks whether they come from where they may.
func TestManagedHosts(t *testing.T) {
	t.Parallel()
	t.Run("here", testManagedHosts)
	if os.Getenv("WEFT_TEST_FORWARDING") != "" {
		return
	}
	t.Run("forwarding", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), "unshare", "--net", "sh", "-c", `
			ip link set lo up; cd /proc/sys/net/ipv4
			echo 1 >ip_forward; echo 1 >conf/all/rp_filter; echo 1 >conf/default/rp_filter; cd -
			exec "$0" -test.run '^TestManagedHosts$/^here$'`, os.Args[0])
		cmd.Env = append(os.Environ(), "WEFT_TEST_FORWARDING=yes")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

func testManagedHosts(t *testing.T) {
	topo := standalone(linear(t, 1, 3))
	topo.Hosts[0].Manage, topo.Hosts[1].Manage = true, true
	l := upForTest(t, topo, Options{})
	h1, ok := l.Management("h1")
	h2, ok2 := l.Management("h2")
	if _, ok3 := l.Management("h3"); !ok || !ok2 || ok3 || h1 == h2 {
		t.Fatalf("h1 %+v, h2 %+v, h3 has %v", h1, h2, ok3)
	}
	out, err := l.Exec(t.Context(), "h1", "sh", "-c", "echo $WEFT_MANAGE_ADDRESS $WEFT_CONTROLLER_ADDRESS")
	if err != nil || out != fmt.Sprintln(h1.Address, h1.Controller) {
		t.Errorf("h1 is told %q, %v; want %+v", out, err, h1)
	}

	// Both ends reach each other, through sockets that this process opened.
	here := greet(t, func() (net.Listener, error) { return net.Listen("tcp", net.JoinHostPort(h1.Controller.String(), "0")) })
	there := greet(t, func() (ln net.Listener, err error) {
		err = machine.InNetns(l.HostNetns("h1"), func() error { ln, err = net.Listen("tcp4", ":0"); return err })
		return ln, err
	})
	second := greet(t, func() (ln net.Listener, err error) {
		err = machine.InNetns(l.HostNetns("h2"), func() error { ln, err = net.Listen("tcp4", ":0"); return err })
		return ln, err
	})
	if !reaches(l, "h1", netip.AddrPortFrom(h1.Controller, here), 20) {
		t.Error("h1 does not reach this machine")
	}
	if !reaches(l, "", netip.AddrPortFrom(h1.Address, there), 20) || !reaches(l, "", netip.AddrPortFrom(h2.Address, second), 20) {
		t.Error("this machine does not reach its hosts")
	}
	if !reaches(l, "h3", netip.AddrPortFrom(topo.Hosts[0].IPv4.Addr(), there), 20) {
		t.Error("h3 does not reach h1 through the switch")
	}

	// No host reaches another one that way, not even if it tries.
	for _, try := range []string{"ip route add 198.18.0.0/15 via " + h1.Controller.String(), "ip route add 169.254.0.0/16 via " + h1.Controller.String()} {
		if out, err := l.Exec(t.Context(), "h1", "sh", "-c", try); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	if reaches(l, "h1", netip.AddrPortFrom(h2.Address, second), 1) {
		t.Error("h1 reaches h2 through this machine")
	}
	if out, err := l.Exec(t.Context(), "h3", "ip", "route", "add", h1.Address.String(), "dev", "eth0"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if reaches(l, "h3", netip.AddrPortFrom(h1.Address, there), 1) {
		t.Error("h3 reaches h1's second interface through the switch")
	}

	other := standalone(linear(t, 1, 1))
	other.Hosts[0].Manage = true
	t.Run("second", func(t *testing.T) {
		m, ok := upForTest(t, other, Options{}).Management("h1")
		if !ok || m.Interface == h1.Interface || m.Address == h1.Address || m.Address == h2.Address {
			t.Errorf("a second lab has %+v, the first %+v and %+v", m, h1, h2)
		}
	})
	// The sockets keep the hosts' namespaces; the interfaces go all the same.
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []layout.Management{h1, h2} {
		if i, err := net.InterfaceByName(m.Interface); err == nil {
			t.Errorf("left is %+v", i)
		}
	}
}

// greet accepts connections for as long as the test lasts, says hello to each,
// and returns the port.
func greet(t *testing.T, listen func() (net.Listener, error)) uint16 {
	t.Helper()
	ln, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			c.Close()
		}
	}()
	return netip.MustParseAddrPort(ln.Addr().String()).Port()
}

// reaches reports whether a host, or this machine, is greeted within so many seconds.
func reaches(l *Lab, host string, at netip.AddrPort, seconds int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds+20)*time.Second)
	defer cancel()
	if host == "" {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
		if err != nil {
			return false
		}
		defer c.Close()
		said, err := io.ReadAll(c)
		return err == nil && string(said) == "hello\n"
	}
	out, err := l.Exec(ctx, host, "timeout", strconv.Itoa(seconds), "bash", "-c", fmt.Sprintf("cat </dev/tcp/%s/%d", at.Addr(), at.Port()))
	return err == nil && strings.Contains(out, "hello")
}

func TestFreePairs(t *testing.T) {
	used := func(s ...string) (p []netip.Prefix) {
		for _, s := range s {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	for _, c := range []struct {
		used []netip.Prefix
		want string
	}{
		{nil, "198.18.0.3"},
		{used("198.18.0.3/32"), "198.18.0.5"},
		{used("198.18.0.0/24", "198.18.1.0/31", "198.18.1.3/32"), "198.18.1.5"},
		{used("198.18.0.0/15"), "169.254.64.3"},
		{used("198.0.0.0/8", "169.254.0.0/16"), ""},
	} {
		m, ok := nodes.FreePairs(c.used)()
		if ok != (c.want != "") || ok && (m.Address.String() != c.want || m.Controller.Next() != m.Address || len(m.Interface) > layout.MaxIface) {
			t.Errorf("with %v: %+v, %v; want %s", c.used, m, ok, c.want)
		}
	}
	free, seen := nodes.FreePairs(nil), map[netip.Addr]bool{}
	for m, ok := free(); ok; m, ok = free() {
		if seen[m.Address] {
			t.Fatalf("%v was given twice", m.Address)
		}
		seen[m.Address] = true
	}
	if len(seen) != 65535+8191 {
		t.Errorf("%d pairs in all", len(seen))
	}
}
