package test

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/topology"
)

// pki is a directory with an authority.
type pki struct {
	t   *testing.T
	dir string
}

func newPKI(t *testing.T) pki {
	t.Helper()
	p := pki{t, filepath.Join(t.TempDir(), "certs")}
	if _, err := certs.Ensure(p.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pki) issue(r certs.Request) {
	p.t.Helper()
	if err := certs.Issue(p.dir, r); err != nil {
		p.t.Fatal(err)
	}
}

func (p pki) file(name string) string { return filepath.Join(p.dir, name) }

// ofSwitches issues a certificate for switches and returns its files.
func (p pki) ofSwitches(name string, list ...flow.DPID) *layout.TLS {
	p.t.Helper()
	p.issue(certs.Request{Name: name, Kind: certs.Switch, Switches: list})
	return &layout.TLS{Certificate: p.file(name + ".crt"), Key: p.file(name + ".key"), Authority: p.file("ca.crt")}
}

// startTLS starts a controller that receives switches by TLS only.
func startTLS(t *testing.T, p pki) *controller {
	t.Helper()
	p.issue(certs.Request{Name: "controller", Kind: certs.Controller})
	address := freeAddress(t)
	return start(t, options{address: address, set: []string{
		`southbound.listen=["tls:` + address + `"]`, "southbound.certificate=" + p.file("controller.crt"),
		"southbound.key=" + p.file("controller.key"), "southbound.authority=" + p.file("ca.crt"),
	}})
}

// upTLS brings a lab up whose switches speak TLS.
func upTLS(t *testing.T, spec string, c *controller, files *layout.TLS) *lab.Lab {
	t.Helper()
	topo, err := topology.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Temporary: true,
		Name:      fmt.Sprintf("t%d", time.Now().UnixNano()%1e9), Controllers: []string{"ssl:" + c.address}, TLS: files, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// refusedFor returns how many connections were refused for a reason.
func refusedFor(c *controller, reason string) float64 {
	return c.metric("weft_southbound_connections_refused_total", "reason", reason)
}

// CVE-2018-1000155, a switch is taken at its word who it is: Open vSwitch over
// TLS is who its certificate says. With the right one it forwards; one that
// poses as another, one of another authority and one without are refused, again
// and again, while the network loses nothing. Certificates are renewed beneath.
func TestCVE_2018_1000155_OpenVSwitchOverTLS(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	c := startTLS(t, p)
	ring := p.ofSwitches("ring", 1, 2, 3)
	l := upTLS(t, "ring:3", c, ring)
	settled(c, l)
	pingAll(t, l, false)
	since := map[string]string{}
	for _, s := range call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
		since[s.Dpid] = s.Since
	}
	result := steady(l, "h1", "h2", 700, 10*time.Millisecond)

	other := newPKI(t)
	stranger := other.ofSwitches("stranger", 1)
	stranger.Authority = ring.Authority // it knows us, and we do not know it
	for _, x := range []struct {
		reason string
		files  *layout.TLS
	}{
		{"wrong_switch", p.ofSwitches("two", 2)}, // it says that it is switch 1
		{"unknown_authority", stranger},
	} {
		wrong := upTLS(t, "linear:1", c, x.files)
		eventually(t, "refused for "+x.reason, func() bool { return refusedFor(c, x.reason) >= 2 })
		if err := wrong.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}
	conn, err := tls.Dial("tcp", c.address, &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		conn.Read(make([]byte, 1)) // TLS 1.3 tells only now
		conn.Close()
	}
	eventually(t, "refused without a certificate", func() bool { return refusedFor(c, "no_certificate") == 1 })

	if done, err := certs.Renew(p.dir, 400*24*time.Hour); err != nil || len(done) != 3 || !done[0].Renewed {
		t.Fatalf("renew: %v %v", done, err)
	}
	if r := <-result; r.Lost() > 0 || r.Error != "" {
		t.Errorf("traffic beside all this: %d of %d lost %s", r.Lost(), r.Sent, r.Error)
	}
	for _, s := range call(c, api.ListSwitches, &api.ListSwitchesRequest{}).Switches {
		if !s.Connected || s.Since != since[s.Dpid] {
			t.Errorf("switch %s was disturbed: %v, before since %s", s.Dpid, s, since[s.Dpid])
		}
	}
	// A switch that comes with the new certificates.
	fourth := p.ofSwitches("fourth", 4)
	topo, err := topology.Resolve("linear:1")
	if err != nil {
		t.Fatal(err)
	}
	topo.Switches[0].DPID = 4
	late, err := lab.Up(context.Background(), topo, lab.Options{
		Temporary: true,
		Name:      fmt.Sprintf("t%d", time.Now().UnixNano()%1e9), Controllers: []string{"ssl:" + c.address}, TLS: fourth, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { late.Down(context.Background()) })
	eventually(t, "a switch with a new certificate", func() bool {
		s := switchOf(c, flow.DPID(4).String())
		return s != nil && s.Connected
	})
	pingAll(t, l, false)
	explain(c)
}

// CVE-2024-29461 and CVE-2013-7333 over TLS: a second Open vSwitch with a
// certificate of the same switch does not put out the first.
func TestCVE_2024_29461_DuplicateOverTLS(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	c := startTLS(t, p)
	files := p.ofSwitches("one", 1)
	l := upTLS(t, "linear:1", c, files)
	one := dpid(t, l, "s1")
	eventually(t, "the switch connected", func() bool {
		s := switchOf(c, one)
		return s != nil && s.Connected
	})
	before := switchOf(c, one)
	upTLS(t, "linear:1", c, files)
	eventually(t, "the second refused", func() bool { return refusedFor(c, "duplicate") >= 3 })
	if s := switchOf(c, one); !s.Connected || s.Since != before.Since || s.Address != before.Address {
		t.Errorf("the first was put out: %v, before %v", s, before)
	}
}
