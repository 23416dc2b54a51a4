package lab

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
)

// Addresses in a 5G core follow from the name of a host alone.
func TestCore5GAddresses(t *testing.T) {
	for _, n := range []int{1, 3, 254} {
		topo, err := Core5G(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(topo); err != nil || len(topo.Hosts) != 2+5*n || topo.Name != "5gc" {
			t.Errorf("%d: %s, %d hosts, %v", n, topo.Name, len(topo.Hosts), err)
		}
		for name, want := range map[string]string{
			"nrf":                   "10.0.0.1/16 fd00::1/64 false [nrf: weft nf nrf]",
			"scp":                   "10.0.0.2/16 fd00::2/64 true []",
			"amf1":                  "10.0.1.1/16 fd00::1:1/64 false [amf: weft nf amf --nrf http://10.0.0.1:7777]",
			fmt.Sprintf("pcf%d", n): fmt.Sprintf("10.0.5.%d/16 fd00::5:%x/64 false [pcf: weft nf pcf --nrf http://10.0.0.1:7777]", n, n),
		} {
			h, ok := topo.HostByName(name)
			if !ok {
				t.Errorf("%d: there is no %s", n, name)
				continue
			}
			run := []string{}
			for _, p := range h.Run {
				run = append(run, p.Name+": "+p.Command)
			}
			if got := fmt.Sprint(h.IPv4, " ", h.IPv6, " ", h.Manage, " ", run); got != want {
				t.Errorf("%d: %s is\n%s, want\n%s", n, name, got, want)
			}
		}
	}
}

// TestNetworkFunction is what stands for weft nf in TestCore5GRuns.
func TestNetworkFunction(t *testing.T) {
	switch args := flag.Args(); {
	case len(args) == 0:
	case args[1] == "nrf":
		err := http.ListenAndServe(net.JoinHostPort(os.Getenv("WEFT_LAB_IPV4"), "7777"), http.NotFoundHandler())
		t.Fatal(err)
	default:
		for {
			r, err := http.Get("http://nrf:7777/" + os.Getenv("WEFT_LAB_HOST"))
			if err == nil {
				r.Body.Close()
				fmt.Println("registered")
				select {}
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func TestCore5GRuns(t *testing.T) {
	t.Parallel()
	weft := filepath.Join(t.TempDir(), "weft")
	script := "#!/bin/sh\nexec " + Quote(keeperOfTest(t)[0]) + " -test.run='^TestNetworkFunction$' -- \"$@\"\n"
	if err := os.WriteFile(weft, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	topo, err := Resolve("5gc:2")
	if err != nil {
		t.Fatal(err)
	}
	topo.Links = slices.DeleteFunc(topo.Links, func(l Link) bool { return l.A == "core2" }) // without a controller, no loops
	l := upForTest(t, standalone(topo), Options{Weft: weft})
	if _, ok := l.Management("scp"); !ok {
		t.Error("scp is not managed")
	}
	for _, p := range l.Programs(t.Context()) {
		if p.Name == "nrf" {
			continue
		}
		for end := time.Now().Add(testwait.Limit); l.LastWords(p.Host, p.Name) != "registered"; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s does not reach the NRF: %q, %+v", p.Host, l.LastWords(p.Host, p.Name), p)
			}
		}
	}
	if n := len(l.Programs(t.Context())); n != 11 {
		t.Errorf("%d programs, want 11", n)
	}
}

func TestForms(t *testing.T) {
	for _, f := range Forms() {
		if !strings.Contains(SpecForms, f) || strings.HasPrefix(f, "FILE") {
			t.Errorf("%s is no form", f)
		}
	}
	if forms := Forms(); !slices.Contains(forms, "5gc:") || !slices.Contains(forms, "demo") {
		t.Errorf("forms %q", forms)
	}
}
