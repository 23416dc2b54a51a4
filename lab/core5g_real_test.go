package lab

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/internal/testprogram"
)

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
	script := "#!/bin/sh\nexec " + topology.Quote(keeperOfTest(t)[0]) + " -test.run='^TestNetworkFunction$' -- \"$@\"\n"
	testprogram.Install(t, weft, []byte(script))
	topo, err := topology.Resolve("5gc:2")
	if err != nil {
		t.Fatal(err)
	}
	topo.Links = slices.DeleteFunc(topo.Links, func(l topology.Link) bool { return l.A == "core2" }) // without a controller, no loops
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
