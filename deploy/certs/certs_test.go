package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// authorityIn makes an authority in a folder of its own.
func authorityIn(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if err := Init(dir, Keep); err != nil {
		t.Fatal(err)
	}
	return dir
}

func issue(t *testing.T, dir string, requests ...Request) {
	t.Helper()
	if err := Issue(dir, requests...); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir, name string) *Identity {
	t.Helper()
	id, err := Load(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// connect makes a TLS connection over TCP on which one octet goes there and
// back. It returns what the client and the server saw of each other.
func connect(t *testing.T, server, client *tls.Config) (byClient, byServer tls.ConnectionState, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(testwait.Limit))
		s := tls.Server(c, server)
		b := make([]byte, 1)
		if _, err = s.Read(b); err == nil {
			_, err = s.Write(b)
		}
		byServer = s.ConnectionState()
		served <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(testwait.Limit))
	s := tls.Client(c, client)
	_, err = s.Write([]byte{7})
	if err == nil {
		_, err = s.Read(make([]byte, 1))
	}
	byClient = s.ConnectionState()
	if err != nil {
		c.Close()
	}
	return byClient, byServer, errors.Join(err, <-served)
}

func TestConnections(t *testing.T) {
	dir := authorityIn(t)
	issue(t, dir, Request{Name: "southbound", Services: []string{"southbound", "discovery"}}, Request{Name: "routing-1", Services: []string{"paths"}},
		Request{Name: "ids", Kind: App})
	sb, routing, ids := open(t, dir, "southbound"), open(t, dir, "routing-1"), open(t, dir, "ids")

	for what, client := range map[string]*tls.Config{"any worker": routing.Client(), "that worker": routing.ClientOf("southbound"), "both in one": routing.Config()} {
		for whose, server := range map[string]*tls.Config{"server": sb.Server(), "both": sb.Config()} {
			c, s, err := connect(t, server, client)
			if err != nil {
				t.Errorf("%s, %s: %v", what, whose, err)
				continue
			}
			if c.Version != tls.VersionTLS13 {
				t.Errorf("%s: version %x", what, c.Version)
			}
			if got := Identities(&s); !slices.Equal(got, []string{"weft://worker/routing-1", "weft://service/paths"}) {
				t.Errorf("%s: the server sees %q", what, got)
			}
			if got := Identities(&c); !slices.Equal(got, []string{"weft://worker/southbound", "weft://service/southbound", "weft://service/discovery"}) {
				t.Errorf("%s: the client sees %q", what, got)
			}
		}
	}
	if _, s, err := connect(t, sb.Server(), ids.Client()); err != nil || !slices.Equal(Identities(&s), []string{"weft://app/ids"}) {
		t.Errorf("an app as client: %v %q", err, Identities(&s))
	}
	if _, _, err := connect(t, ids.Server(), sb.ClientOfApp("ids")); err != nil {
		t.Errorf("an app as server: %v", err)
	}
	// One of another program, which checks the host's name.
	plain := &tls.Config{RootCAs: sb.pool, ServerName: "localhost", GetClientCertificate: ids.Server().GetClientCertificate}
	if _, _, err := connect(t, sb.Server(), plain); err != nil {
		t.Errorf("by host name: %v", err)
	}
	if c, _, err := connect(t, &tls.Config{}, &tls.Config{InsecureSkipVerify: true}); err == nil || Identities(&c) != nil || Identities(nil) != nil {
		t.Error("identities of one that is not verified")
	}
}

func TestRefused(t *testing.T) {
	dir, other := authorityIn(t), authorityIn(t)
	issue(t, dir, Request{Name: "a"}, Request{Name: "b"}, Request{Name: "app", Kind: App})
	issue(t, other, Request{Name: "a"})
	a, b, app, stranger := open(t, dir, "a"), open(t, dir, "b"), open(t, dir, "app"), open(t, other, "a")
	at := func(when time.Time, c *tls.Config) *tls.Config {
		c.Time = func() time.Time { return when }
		return c
	}
	none := b.Client()
	none.GetClientCertificate = nil
	old := b.Client()
	old.MaxVersion, old.MinVersion = tls.VersionTLS12, tls.VersionTLS12
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		want           string
	}{
		{"no client certificate", a.Server(), none, "client didn't provide a certificate"},
		{"client of another authority", a.Server(), withRoots(stranger.Client(), a.pool), "certificate signed by unknown authority"},
		{"server of another authority", stranger.Server(), b.Client(), "certificate signed by unknown authority"},
		{"another worker", a.Server(), b.ClientOf("c"), `the server is ["weft://worker/a"], not weft://worker/c`},
		{"another case", a.Server(), b.ClientOf("A"), "not weft://worker/A"},
		{"an app as a worker", app.Server(), b.Client(), "certificate is valid for app.weft.internal"},
		{"an app as a worker, by name", app.Server(), b.ClientOf("app"), "certificate is valid for app.weft.internal"},
		{"a worker as an app", a.Server(), b.ClientOfApp(""), "certificate is valid for worker.weft.internal"},
		{"expired, to the client", a.Server(), at(time.Now().Add(366*24*time.Hour), b.Client()), "certificate has expired"},
		{"expired, to the server", at(time.Now().Add(366*24*time.Hour), a.Server()), b.Client(), "certificate has expired"},
		{"not yet valid", at(time.Now().Add(-48*time.Hour), a.Server()), b.Client(), "not yet valid"},
		{"TLS 1.2", a.Server(), old, "protocol version"},
	} {
		if _, _, err := connect(t, c.server, c.client); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	// An hour's difference between clocks harms nobody.
	for _, d := range []time.Duration{time.Hour, -time.Hour} {
		if _, _, err := connect(t, at(time.Now().Add(d), a.Server()), b.Client()); err != nil {
			t.Errorf("clock off by %v: %v", d, err)
		}
	}
}

func withRoots(c *tls.Config, roots *x509.CertPool) *tls.Config {
	c.RootCAs = roots
	return c
}

func TestRenewed(t *testing.T) {
	dir := authorityIn(t)
	issue(t, dir, Request{Name: "a"}, Request{Name: "b"})
	now := time.Now()
	a, err := load(dir, "a", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, dir, "b")
	server, client := a.Server(), a.Client()
	serial := func() (served, shown string) {
		t.Helper()
		c, _, err := connect(t, server, b.Client())
		if err != nil {
			t.Fatal(err)
		}
		_, s, err := connect(t, b.Server(), client)
		if err != nil {
			t.Fatal(err)
		}
		return c.PeerCertificates[0].SerialNumber.Text(16), s.PeerCertificates[0].SerialNumber.Text(16)
	}
	first, again := serial()
	issue(t, dir, Request{Name: "a", Force: Replace})
	now = now.Add(2 * time.Second)
	served, shown := serial()
	if first != again || served == first || shown != served || a.Err() != nil {
		t.Errorf("before %s, %s, after %s, %s, %v", first, again, served, shown, a.Err())
	}

	// New files that are wrong: the last good ones stay.
	for what, spoil := range map[string]func(f files) error{
		"do not belong together": func(f files) error {
			key, err := os.ReadFile(filesOf(dir, "b").key)
			return errors.Join(err, os.WriteFile(f.key, key, 0o600))
		},
		"are needed":     func(f files) error { return os.Remove(f.key) },
		"no certificate": func(f files) error { return os.WriteFile(f.cert, []byte("x"), 0o600) },
	} {
		if err := spoil(filesOf(dir, "a")); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
		if still, _ := serial(); still != served {
			t.Errorf("%s: %s became %s", what, served, still)
		}
		if a.Err() == nil {
			t.Errorf("%s: no error", what)
		}
		issue(t, dir, Request{Name: "a", Force: Replace})
		now = now.Add(2 * time.Second)
		if served, _ = serial(); a.Err() != nil {
			t.Errorf("after %s: %v", what, a.Err())
		}
	}
	now = now.Add(400 * 24 * time.Hour)
	if err := a.Err(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired: %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	fresh := func(t *testing.T) string {
		dir := authorityIn(t)
		issue(t, dir, Request{Name: "a"}, Request{Name: "b"})
		return dir
	}
	move := func(t *testing.T, from, to string) {
		t.Helper()
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		after time.Duration
		want  string
	}{
		{"no authority", func(t *testing.T, dir string) { os.Remove(filesOf(dir, "ca").cert) }, 0, "make an authority with weft certs init --dir "},
		{"no certificate", func(t *testing.T, dir string) { os.Remove(filesOf(dir, "a").cert) }, 0, "issue them with weft certs issue --dir "},
		{"another's key", func(t *testing.T, dir string) { move(t, filesOf(dir, "b").key, filesOf(dir, "a").key) }, 0, "the key is another's"},
		{"another's certificate", func(t *testing.T, dir string) {
			move(t, filesOf(dir, "b").key, filesOf(dir, "a").key)
			move(t, filesOf(dir, "b").cert, filesOf(dir, "a").cert)
		}, 0, `is not the certificate of a, but of ["weft://worker/b"]`},
		{"another authority", func(t *testing.T, dir string) { move(t, filesOf(fresh(t), "ca").cert, filesOf(dir, "ca").cert) }, 0, "which is not the authority of"},
		{"a worker as authority", func(t *testing.T, dir string) { move(t, filesOf(dir, "b").cert, filesOf(dir, "ca").cert) }, 0, "is not that of an authority"},
		{"a key as certificate", func(t *testing.T, dir string) { move(t, filesOf(dir, "a").key, filesOf(dir, "a").cert) }, 0, "the certificate is in the .crt file"},
		{"no PEM", func(t *testing.T, dir string) { os.WriteFile(filesOf(dir, "a").key, nil, 0o600) }, 0, "has no private key in PEM form"},
		{"expired", func(*testing.T, string) {}, 366 * 24 * time.Hour, "expired on "},
		{"not yet valid", func(*testing.T, string) {}, -25 * time.Hour, "is the clock right?"},
		{"authority expired", func(*testing.T, string) {}, 3651 * 24 * time.Hour, "make another authority"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fresh(t)
			c.spoil(t, dir)
			if _, err := load(dir, "a", func() time.Time { return time.Now().Add(c.after) }); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, err := Load(fresh(t), "../a"); err == nil {
		t.Error("a path as a name")
	}
}

func TestFiles(t *testing.T) {
	dir := authorityIn(t)
	issue(t, dir, Request{Name: "a"})
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		info, _ := e.Info()
		if names = append(names, e.Name()); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
	if !slices.Equal(names, []string{"a.crt", "a.key", "ca.crt", "ca.key"}) {
		t.Errorf("files %q", names)
	}
	before, _ := os.ReadFile(filesOf(dir, "ca").cert)
	if err := Init(dir, Keep); err == nil || !strings.Contains(err.Error(), "ca.crt exists; only --force replaces it") {
		t.Errorf("a second authority: %v", err)
	}
	if err := Issue(dir, Request{Name: "new"}, Request{Name: "a"}); err == nil || !strings.Contains(err.Error(), "a.crt exists; only --force") {
		t.Errorf("a second certificate: %v", err)
	}
	if _, err := os.Stat(filesOf(dir, "new").cert); !errors.Is(err, fs.ErrNotExist) {
		t.Error("one of two was issued")
	}
	after, _ := os.ReadFile(filesOf(dir, "ca").cert)
	if string(before) != string(after) {
		t.Error("the authority changed")
	}
	if err := Init(dir, Replace); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, "a"); err == nil || !strings.Contains(err.Error(), "which is not the authority") {
		t.Errorf("after a new authority: %v", err)
	}
	issue(t, dir, Request{Name: "a", Force: Replace, Validity: 20 * 365 * 24 * time.Hour, Hosts: []string{"192.0.2.1", "Node.example"}})
	info, err := Read(filesOf(dir, "a").cert)
	if err != nil || len(info) != 1 {
		t.Fatal(err)
	}
	ca, _ := Read(filesOf(dir, "ca").cert)
	if !info[0].Until.Equal(ca[0].Until) || !slices.Equal(info[0].Hosts, []string{"node.example", "192.0.2.1"}) || !ca[0].Authority || ca[0].DaysLeft != 3649 {
		t.Errorf("%+v, authority %+v", info, ca)
	}
	if err := os.Remove(filesOf(dir, "ca").key); err != nil {
		t.Fatal(err)
	}
	if err := Issue(dir, Request{Name: "c"}); err == nil || !strings.Contains(err.Error(), "only where the authority's key is") {
		t.Errorf("no key of the authority: %v", err)
	}
	if err := os.Rename(filesOf(dir, "a").key, filesOf(dir, "ca").key); err != nil {
		t.Fatal(err)
	}
	if err := Issue(dir, Request{Name: "c"}); err == nil || !strings.Contains(err.Error(), "does not belong to") {
		t.Errorf("another key as the authority's: %v", err)
	}
}

func TestRequests(t *testing.T) {
	dir := authorityIn(t)
	err := Issue(dir, Request{}, Request{Name: "ca"}, Request{Name: "a", Kind: "x", Services: []string{"b/c"}, Hosts: []string{"a b"}, Validity: -1},
		Request{Name: "d"}, Request{Name: "d"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`name ""`, "name \"ca\" is that of the authority", `kind "x"; allowed: worker, app`, `service "b/c"`, `host "a b"`, "validity -1ns", "name d: given twice"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

func TestFits(t *testing.T) {
	dir := authorityIn(t)
	r := Request{Name: "a", Services: []string{"x", "y"}, Hosts: []string{"127.0.0.1", "node"}}
	if err := Fits(dir, r); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	issue(t, dir, r)
	r.Services = []string{"y", "x"}
	if err := Fits(dir, r); err != nil {
		t.Error(err)
	}
	more, elsewhere := r, r
	more.Services = append(more.Services, "z")
	elsewhere.Hosts = []string{"node2"}
	for _, r := range []Request{more, elsewhere} {
		if err := Fits(dir, r); err == nil {
			t.Errorf("%+v fits", r)
		}
	}
	issue(t, dir, Request{Name: "a", Validity: 2 * time.Hour, Force: Replace})
	if err := Fits(dir, Request{Name: "a"}); err == nil || !strings.Contains(err.Error(), "expires on") {
		t.Errorf("soon over: %v", err)
	}
}
