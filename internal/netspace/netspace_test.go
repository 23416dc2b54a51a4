package netspace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/rootpart"
)

// namespace makes a network namespace for a test.
func namespace(t *testing.T) string {
	t.Helper()
	ns := fmt.Sprintf("weft-netspace%d.a", os.Getpid())
	for _, line := range []string{"netns add " + ns, "-n " + ns + " link set lo up"} {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s; this test needs root and iproute2", line, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", ns).Run() })
	return ns
}

// A socket is in the namespace in which it was opened: two listen at one address
// and port, and a connection reaches the one of its own namespace.
func TestSockets(t *testing.T) {
	ns, ctx := namespace(t), context.Background()
	here, err := Listen(ctx, "", netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	at := netip.MustParseAddrPort(here.Addr().String())
	there, err := Listen(ctx, ns, at) // where nobody else is
	if err != nil {
		t.Fatalf("the address is not free there: %v", err)
	}
	defer there.Close()
	for text, l := range map[string]net.Listener{"there": there, "here": here} {
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(c, text)
				c.Close()
			}
		}()
	}
	for text, where := range map[string]string{"there": ns, "here": ""} {
		c, err := Dial(ctx, where, netip.MustParseAddr("127.0.0.7"), at)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(c)
		if err != nil || string(got) != text || !strings.HasPrefix(c.LocalAddr().String(), "127.0.0.7:") {
			t.Errorf("%s: %q from %v, %v", text, got, c.LocalAddr(), err)
		}
		c.Close()
	}
	if _, err := Dial(ctx, ns, netip.Addr{}, netip.MustParseAddrPort("127.0.0.1:1")); err == nil || !strings.Contains(err.Error(), ns) {
		t.Errorf("nobody listens there: %v", err)
	}
}

// What is no namespace, or not a lab's, is refused.
func TestRefused(t *testing.T) {
	ctx := context.Background()
	at := netip.MustParseAddrPort("127.0.0.1:0")
	for ns, want := range map[string]string{
		"weft-none":   "there is no network namespace weft-none",
		"../ns":       "want the name of a network namespace",
		"a/b":         "want the name of a network namespace",
		".":           "want the name of a network namespace",
		"-n":          "want the name of a network namespace",
		"x\x00y":      "want the name of a network namespace",
		"weft-a\nb.c": "want the name of a network namespace",
	} {
		if _, err := Listen(ctx, ns, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", ns, err)
		}
	}
}

// A process without rights has its sockets from the part that is root, and only
// in namespaces of labs.
func TestRights(t *testing.T) {
	ns, ctx := namespace(t), context.Background()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { _ = rootpart.Server{UID: 64653, Verbs: Rights([]string{ns, "other"})}.Serve(l) }()
	f, err := rootpart.AskFile(ctx, path, verbSocket, request{Namespace: ns, Listen: netip.MustParseAddrPort("127.0.0.1:0")})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := net.FileListener(f)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	c, err := Dial(ctx, ns, netip.Addr{}, netip.MustParseAddrPort(got.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for what, r := range map[string]any{
		"not a lab's": request{Namespace: "other", Listen: netip.MustParseAddrPort("127.0.0.1:0")},
		"a path":      request{Namespace: "weft-/../../../proc/1/ns/net", Listen: netip.MustParseAddrPort("127.0.0.1:0")},
		"its own":     request{Listen: netip.MustParseAddrPort("127.0.0.1:0")},
		"nothing":     request{Namespace: ns},
		"not named":   request{Namespace: "weft-another.h1", Listen: netip.MustParseAddrPort("127.0.0.1:0")},
		"a zone":      request{Namespace: ns, Listen: netip.MustParseAddrPort("[::1%x,unix:/run/s]:0")},
		"from a zone": request{Namespace: ns, From: netip.MustParseAddr("fe80::1%lo"), Dial: netip.MustParseAddrPort("[::1]:1")},
		"nonsense":    json.RawMessage(`[1]`),
	} {
		if f, err := rootpart.AskFile(ctx, path, verbSocket, r); err == nil {
			f.Close()
			t.Errorf("%s: a socket", what)
		}
	}
}
