package lab

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/lab/topology"
)

// What runs in a host finds the hosts of its own lab by name, and the
// machine's own names stay as they are.
func TestNamesOfHosts(t *testing.T) {
	outside, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nrf", "udm"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topo := standalone(linear(t, 1, 2))
			topo.Hosts[1].Name, topo.Hosts[1].IPv6 = name, topology.NoIPv6()
			l := upForTest(t, topo, Options{})
			other := map[string]string{"nrf": "udm", "udm": "nrf"}[name]
			if out, err := l.Exec(t.Context(), "h1", "getent", "hosts", name); err != nil || !strings.HasPrefix(out, "10.0.0.2 ") {
				t.Errorf("%s is %q, %v; want 10.0.0.2", name, out, err)
			}
			if out, err := l.Exec(t.Context(), "h1", "getent", "hosts", other); err == nil {
				t.Errorf("%s, a host of another lab, is %q", other, out)
			}
			out, err := l.Exec(t.Context(), "h1", "sh", "-c", "echo $WEFT_LAB $WEFT_LAB_HOST $WEFT_LAB_IPV4 $WEFT_LAB_IPV6")
			if want := l.Name() + " h1 10.0.0.1 fd00::1\n"; err != nil || out != want {
				t.Errorf("the environment says %q, %v; want %q", out, err, want)
			}
		})
	}
	t.Cleanup(func() {
		if now, err := os.ReadFile("/etc/hosts"); err != nil || string(now) != string(outside) {
			t.Errorf("/etc/hosts of the machine is now\n%s, %v", now, err)
		}
		if out, err := exec.Command("findmnt", "/etc/hosts").Output(); err == nil {
			t.Errorf("something is mounted at /etc/hosts of the machine: %s", out)
		}
	})
}
