//go:build long

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/test/testbed"
)

// TestCNI has cnitool, which the authors of CNI have written, attach containers to the
// controller by weft-cni, on two nodes with an Open vSwitch each: every container has a
// switch of its own, reaches those of both nodes, and leaves nothing behind, whether it is
// deleted, deleted twice, or gone with its namespace before.
func TestCNI(t *testing.T) {
	dir, id := t.TempDir(), fmt.Sprintf("weft-cni%d", os.Getpid())
	weft := testprogram.Weft(t)
	for program, pkg := range map[string]string{"bin/weft-cni": "github.com/weft-sdn/weft/cmd/weft-cni", "cnitool": "github.com/containernetworking/cni/cnitool"} {
		shell(t, "go", "build", "-o", filepath.Join(dir, program), pkg)
	}
	namespace := func(name string) string {
		ns := id + "-" + name
		shell(t, "ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", ns).Run() })
		return ns
	}
	nodes := []string{namespace("n1"), namespace("n2")}
	shell(t, "ip", "link", "add", "n2", "netns", nodes[0], "type", "veth", "peer", "name", "n1", "netns", nodes[1])
	in := func(node int, args ...string) (string, error) {
		out, err := exec.Command("ip", append([]string{"netns", "exec", nodes[node]}, args...)...).CombinedOutput()
		return string(out), err
	}
	must := func(node int, args ...string) string {
		t.Helper()
		out, err := in(node, args...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	vsctl := func(node int, args ...string) string {
		t.Helper()
		return must(node, append([]string{"ovs-vsctl", "--db=unix:" + filepath.Join(dir, nodes[node], "db.sock")}, args...)...)
	}
	for i := range nodes {
		at := filepath.Join(dir, nodes[i])
		if err := os.MkdirAll(filepath.Join(at, "conf"), 0o755); err != nil {
			t.Fatal(err)
		}
		address, other := fmt.Sprintf("192.0.2.%d", i+1), fmt.Sprintf("192.0.2.%d", 2-i)
		must(i, "ip", "link", "set", "lo", "up")
		must(i, "ovsdb-tool", "create", at+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
		for _, args := range [][]string{
			{"ovsdb-server", at + "/conf.db", "--remote=punix:" + at + "/db.sock"}, {"ovs-vswitchd", "unix:" + at + "/db.sock"},
		} {
			daemon := args[0]
			args = append([]string{"netns", "exec", nodes[i], "env", "OVS_RUNDIR=" + at}, append(args, "--unixctl="+at+"/"+daemon+".ctl", "-vconsole:off", "-vsyslog:off")...)
			p, err := testbed.StartProcess(daemon, -1, "ip", args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Stop)
			if daemon == "ovsdb-server" {
				testwait.Until(t, "the database answers", func() bool {
					_, err := in(i, "ovs-vsctl", "--db=unix:"+at+"/db.sock", "--no-wait", "init")
					return err == nil
				})
			}
		}
		// VXLAN of this datapath leaves by the address of a bridge (Open vSwitch, "Userspace tunneling").
		vsctl(i, "add-br", "phy", "--", "set", "bridge", "phy", "datapath_type=netdev", "--", "add-port", "phy", fmt.Sprintf("n%d", 2-i))
		must(i, "sh", "-ec", fmt.Sprintf("ip addr add %s/24 dev phy; ip link set phy up; ip link set n%d up", address, 2-i))
		conf := fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "core5g", "plugins": [{"type": "weft-cni", "controllers": ["tcp:192.0.2.1:6653"],
			"ovsdb": "unix:%s/db.sock", "datapath": "netdev", "peers": [%q], "capabilities": {"ips": true}}]}`, at, other)
		if err := os.WriteFile(filepath.Join(at, "conf", "core5g.conflist"), []byte(conf), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	up, err := testbed.StartProcess("weft", -1, "ip", "netns", "exec", nodes[0], weft, "up", "--user", "root", "--data-dir", filepath.Join(dir, "data"), "--listen", "192.0.2.1:6653", "--set", "southbound.plain=true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(up.Stop)
	cni := func(node int, operation, container, address string) (string, error) {
		args := []string{"env", "CNI_PATH=" + filepath.Join(dir, "bin"), "NETCONFPATH=" + filepath.Join(dir, nodes[node], "conf"),
			"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=core;K8S_POD_NAME=" + container, fmt.Sprintf(`CAP_ARGS={"ips": [%q]}`, address)}
		// cnitool keeps its records in a fixed folder of the machine.
		script := "mount -t tmpfs none /var/lib; mkdir -p " + dir + "/cache$0 /var/lib/cni; mount --bind " + dir + "/cache$0 /var/lib/cni; exec \"$@\""
		return in(node, append([]string{"sh", "-ec", script, fmt.Sprint(node)}, append(args, filepath.Join(dir, "cnitool"), operation, "core5g", "/run/netns/"+id+"-"+container)...)...)
	}
	for i, c := range []struct {
		node          int
		name, address string
	}{{0, "amf", "10.9.0.1/24"}, {0, "smf", "10.9.0.2/24"}, {1, "udm", "10.9.0.3/24"}} {
		namespace(c.name)
		out, err := cni(c.node, "add", c.name, c.address)
		var r struct {
			IPs []struct{ Address string } `json:"ips"`
		}
		if err != nil || json.Unmarshal([]byte(out), &r) != nil || len(r.IPs) != 1 || r.IPs[0].Address != c.address {
			t.Fatalf("container %d: %v\n%s", i, err, out)
		}
		if out, err := cni(c.node, "check", c.name, c.address); err != nil {
			t.Errorf("check of %s: %v\n%s", c.name, err, out)
		}
	}
	testwait.Until(t, "five switches are connected", func() bool {
		out, err := in(0, weft, "get", "switches", "-o", "json")
		return err == nil && strings.Count(out, `"connected": true`) == 5
	})
	for _, to := range []string{"10.9.0.2", "10.9.0.3"} {
		testwait.Until(t, "amf reaches "+to, func() bool {
			return exec.Command("ip", "netns", "exec", id+"-amf", "ping", "-c", "1", "-W", "1", to).Run() == nil
		})
	}
	shell(t, "ip", "netns", "delete", id+"-smf")
	for range 2 {
		for _, name := range []string{"amf", "smf"} {
			if out, err := cni(0, "del", name, "10.9.0.1/24"); err != nil {
				t.Errorf("del of %s: %v\n%s", name, err, out)
			}
		}
	}
	if out, err := cni(0, "check", "amf", "10.9.0.1/24"); err == nil {
		t.Errorf("a container that is gone passes the check:\n%s", out)
	}
	if out, err := cni(1, "gc", "udm", "10.9.0.3/24"); err != nil {
		t.Errorf("gc: %v\n%s", err, out)
	}
	broken := `{"cniVersion": "1.1.0", "name": "broken", "type": "weft-cni", "controllers": ["tcp:192.0.2.1:6653"], "ovsdb": "unix:/nowhere", "runtimeConfig": {"ips": ["10.9.0.9/24"]}}`
	if out, err := in(0, "env", "CNI_COMMAND=ADD", "CNI_CONTAINERID=broken", "CNI_NETNS=/run/netns/"+id+"-amf", "CNI_IFNAME=net2", "CNI_PATH="+dir+"/bin",
		"sh", "-c", "echo '"+broken+"' | "+dir+"/bin/weft-cni"); err == nil {
		t.Errorf("add without Open vSwitch succeeds:\n%s", out)
	}
	for i, want := range []int{2, 2} { // phy, and the node's own: cnitool's gc names no container that is there
		if out := strings.Fields(vsctl(i, "list-br")); len(out) != want {
			t.Errorf("node %d has the switches %q, want %d", i+1, out, want)
		}
	}
	if out := must(0, "ip", "-br", "link"); strings.Contains(out, "wv") {
		t.Errorf("an interface is left:\n%s", out)
	}
}
