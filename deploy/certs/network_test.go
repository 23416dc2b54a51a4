package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A switch's certificate names its datapaths, and is no good as a server: with
// it nobody can pose as the controller to another switch.
func TestSwitchCertificate(t *testing.T) {
	dir := authorityIn(t)
	issue(t, dir, Request{Name: "edge", Kind: Switch, Switches: []flow.DPID{1, 0xab}}, Request{Name: "controller", Kind: Controller, Hosts: []string{"sdn.example.org"}})
	info, err := Read(File(dir, "edge"))
	if err != nil || !slices.Equal(info[0].Identities, []string{"weft://switch/0000000000000001", "weft://switch/00000000000000ab"}) || len(info[0].Hosts) != 0 {
		t.Errorf("%+v %v", info, err)
	}
	list, err := readCerts(File(dir, "edge"))
	if err != nil || !slices.Equal(list[0].ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) {
		t.Errorf("%v %v", list[0].ExtKeyUsage, err)
	}
	for _, r := range []Request{{Name: "x", Kind: Switch}, {Name: "x", Switches: []flow.DPID{1}}, {Name: "x", Kind: "other"}} {
		if err := Issue(dir, r); err == nil {
			t.Errorf("%+v is issued", r)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 6 {
		t.Errorf("%q %v", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info.Mode(), err)
		}
	}
}

// CVE-2024-46943, a stranger takes the place of a member of OpenDaylight's
// cluster that is away: among workers nobody is taken in, as client or server,
// who has no certificate of a worker or app of ours; least of all one of a switch
// or of the controller's front door.
func TestCVE_2024_46943_NobodyPosesAsAPeer(t *testing.T) {
	dir, other := authorityIn(t), authorityIn(t)
	issue(t, dir, Request{Name: "a"}, Request{Name: "b"}, Request{Name: "s", Kind: Switch, Switches: []flow.DPID{1}}, Request{Name: "controller", Kind: Controller})
	issue(t, other, Request{Name: "b"})
	a, rogue := open(t, dir, "a"), open(t, other, "b")
	pair := func(name string) tls.Certificate {
		p, err := tls.LoadX509KeyPair(filesOf(dir, name).cert, filesOf(dir, name).key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	bare := func(list ...tls.Certificate) *tls.Config {
		return &tls.Config{InsecureSkipVerify: true, Certificates: list, ClientAuth: tls.RequestClientCert}
	}
	for who, c := range map[string]*tls.Config{
		"a worker of another authority": rogue.Config(), "a switch": bare(pair("s")), "the controller's front door": bare(pair("controller")),
	} {
		if _, _, err := connect(t, a.Server(), c); err == nil {
			t.Errorf("%s is let in", who)
		}
		if _, _, err := connect(t, c, a.ClientOf("b")); err == nil {
			t.Errorf("%s is taken for worker b", who)
		}
		if _, _, err := connect(t, c, a.Client()); err == nil {
			t.Errorf("%s is taken for a worker", who)
		}
	}
	if _, _, err := connect(t, a.Server(), bare()); err == nil {
		t.Error("one without a certificate is let in")
	}
	if _, _, err := connect(t, a.Server(), open(t, dir, "b").Client()); err != nil {
		t.Errorf("worker b: %v", err)
	}
	if _, err := Load(dir, "s"); err == nil {
		t.Error("a process runs by the certificate of a switch")
	}
}

func TestRenew(t *testing.T) {
	dir := authorityIn(t)
	now := time.Now()
	week := 7 * 24 * time.Hour
	issue(t, dir, Request{Name: "edge", Services: []string{"southbound"}, Hosts: []string{"node7", "192.0.2.7"}, Validity: week},
		Request{Name: "sw", Kind: Switch, Switches: []flow.DPID{7, 8}, Validity: week}, Request{Name: "controller", Kind: Controller})
	before := map[string]Info{}
	for _, name := range []string{"edge", "sw", "controller"} {
		list, err := Read(File(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before[name] = list[0]
	}
	later := now.Add(30 * 24 * time.Hour) // the two have ended
	done, err := renewAt(dir, later, 30*24*time.Hour, nil)
	if err != nil || len(done) != 3 {
		t.Fatal(done, err)
	}
	for _, r := range done {
		list, err := Read(File(dir, r.Name))
		if err != nil {
			t.Fatal(err)
		}
		was, is := before[r.Name], list[0]
		if !slices.Equal(is.Identities, was.Identities) || !slices.Equal(is.Hosts, was.Hosts) {
			t.Errorf("%s: %+v, before %+v", r.Name, is, was)
		}
		if renewed := r.Name != "controller"; r.Renewed != renewed || (is.Serial != was.Serial) != renewed || !r.Until.Equal(is.Until) {
			t.Errorf("%s: %+v", r.Name, r)
		}
		if r.Renewed && is.Until.Sub(later).Round(time.Hour) != week {
			t.Errorf("%s lasts until %v", r.Name, is.Until)
		}
	}
	for _, names := range [][]string{{"ca"}, {"nobody"}, {"../x"}} {
		if _, err := Renew(dir, week, names...); err == nil {
			t.Errorf("%q is renewed", names)
		}
	}
	if _, err := Renew(t.TempDir(), week); err == nil || !strings.Contains(err.Error(), "no certificates") {
		t.Errorf("an empty directory: %v", err)
	}
	if made, err := Ensure(dir); made || err != nil {
		t.Errorf("an authority that is there: %v %v", made, err)
	}
	if err := os.Remove(filesOf(dir, authority).key); err != nil {
		t.Fatal(err)
	}
	if _, err := Renew(dir, 400*24*time.Hour); err == nil || errors.Is(err, os.ErrNotExist) && !strings.Contains(err.Error(), "authority's key") {
		t.Errorf("without the authority's key: %v", err)
	}
}
