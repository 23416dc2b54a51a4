package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/traffic"

	"github.com/weft-sdn/weft/lab/topology"
)

// runLab runs `weft lab ARGS` in this process.
func runLab(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := labCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestLabHelpHasExamples(t *testing.T) {
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		if !c.Hidden && (c.Short == "" || c.Example == "") {
			t.Errorf("%s has no short help or no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(labCommand())
}

// The topology file shown by `weft lab up --help` is one.
func TestLabHelpFileIsValid(t *testing.T) {
	_, file, ok := strings.Cut(labUpCommand().Long, "\n  name: triangle\n")
	if !ok {
		t.Fatal("the help shows no file")
	}
	topo, err := topology.Parse("triangle.yaml", []byte("  name: triangle\n"+file))
	if err != nil {
		t.Fatal(err)
	}
	if len(topo.Switches) != 3 || len(topo.Hosts) != 2 || len(topo.Links) != 3 {
		t.Errorf("%+v", topo)
	}
}

func TestLabGraphOffline(t *testing.T) {
	dir := t.TempDir()
	for _, output := range []string{"table", "dot", "svg", "json", "yaml"} {
		out, err := runLab(t, "graph", "fattree:4", "-o", output)
		if err != nil || !strings.Contains(out, "e4-2") {
			t.Errorf("-o %s: %v\n%s", output, err, out)
		}
		if output != "yaml" && output != "json" {
			continue
		}
		file := filepath.Join(dir, "again."+output)
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if again, err := runLab(t, "graph", file, "-o", output); err != nil || again != out {
			t.Errorf("-o %s does not read back: %v", output, err)
		}
	}
}

// A file of another tool is read as one of ours, once what it leaves open is answered.
func TestLabOfAnotherTool(t *testing.T) {
	file := writeFile(t, "two.clab.yml", `
topology:
  kinds: {nokia_srlinux: {image: ghcr.io/nokia/srlinux}}
  nodes:
    srl1: {kind: nokia_srlinux}
    srl2: {kind: nokia_srlinux}
  links: [{endpoints: ["srl1:e1-1", "srl2:e1-1"]}]
`)
	want := "2 nodes (srl1, srl2) of kind nokia_srlinux: a lab cannot run it. Say what stands in: --as nokia_srlinux=KIND"
	if _, err := runLab(t, "graph", file); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	out, err := runLab(t, "graph", file, "--as", "nokia_srlinux=router", "--as", "srl2=bridge", "-o", "yaml")
	if err != nil || !strings.Contains(out, "kind: router") || !strings.Contains(out, "kind: bridge") {
		t.Errorf("%v\n%s", err, out)
	}
	if status, out, errs := weftCommand("check", file); status != 1 || !strings.Contains(out+errs, want) {
		t.Errorf("check: %d %s%s", status, out, errs)
	}
}

func TestLabCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"__complete lab up 5":       "5gc:\n",
		"__complete lab graph fa":   "fattree:\n",
		"__complete lab up demo ''": ":4\n", // no more, and no files
	} {
		var out, errs bytes.Buffer
		if status := execute(strings.Fields(line), &out, &errs); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit status %d, %s%s", line, status, &out, &errs)
		}
	}
}

func TestLabUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"graph star:3":                 "neither a file nor a known form",
		"graph demo --as srl1":         `--as: "srl1": want NODE=KIND or KIND-IN-THE-FILE=KIND, such as nokia_srlinux=router`,
		"graph demo --as srl1=cisco":   "allowed: openflow, hybrid, router, bridge, host, none",
		"graph demo -o pdf":            `--output "pdf": want table, dot, svg, json or yaml`,
		"up demo -o svg":               `--output "svg": want table, json or yaml`,
		"up demo --controller here":    `"here" is not a controller's address; allowed: tcp:HOST:PORT, ssl:HOST:PORT, unix:PATH, direct, none`,
		"up demo --name a.b":           `"a.b" is not a name for a lab`,
		"up":                           "accepts 1 arg(s), received 0",
		"down":                         "name the one lab to take down, or all of them by --all",
		"down a --all":                 "name the one lab to take down, or all of them by --all",
		"down a/b":                     `"a/b" is not a name for a lab`,
		"ping h1":                      "name two hosts, or every pair by --all",
		"ping h1 h2 --all":             "name two hosts, or every pair by --all",
		"ping h1 h2 --name nowhere":    "lab nowhere: no such lab is up; see `weft lab list`",
		"exec h1 --name nowhere -- ls": "lab nowhere: no such lab is up",
		"iperf h1 h2 --name nowhere":   "lab nowhere: no such lab is up",
		"iperf h1 h2 --udp 5":          `--udp "5": want a rate: `,
		"link --name nowhere":          "lab nowhere: no such lab is up",
		"graph --name nowhere":         "lab nowhere: no such lab is up",
		"serve --allow all":            `--allow: "all" cannot be allowed; allowed: exec, capture, up, down, run`,
		"list -o table2":               `--output "table2": want table, json or yaml`,
		"ping h1 h2 -c 0":              "--count 0: want 1 packet or more",
		"ping h1 h2 -c -2":             "--count -2: want 1 packet or more",
		"ping h1 h2 -i 0":              "--interval 0s: want 1ms or more",
		"ping h1 h2 -W -1s":            "--timeout -1s: want a time above 0",
		"ping h1 h2 --parallel 0":      "--parallel 0: want 1 pair or more",
		"iperf h1 h2 -t 0s":            "--time 0s: want whole seconds, 1s or more",
		"iperf h1 h2 -P 0":             "--parallel 0: want 1 stream or more",
		"traffic h1 h2 --rate 0":       "--rate 0: want 0.1 to 1000000 packets a second",
		"traffic h1 h2 --arrivals no":  `--arrivals "no": want poisson or constant`,
		"traffic h1 h2 -t 0s":          "--time 0s: want a time above 0",
		"traffic h1 h2 --flows 0":      "--flows 0: want 1 or more",
		"traffic h1 h2 --size -1":      "--size -1: want the bytes of a packet",
	} {
		if out, err := runLab(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weft lab %s:\ngot  %v %s\nwant %s", line, err, out, want)
		}
	}
}

// A lab that is not up is said with what is to be done about it.
func TestLabRemedy(t *testing.T) {
	for state, want := range map[string]string{
		"up": "", "half applied: apply its file again": "", "not known: only root may ask": "",
		"half made":                          "weft lab down x",
		"broken: keeper does not run":        "weft lab down x, then bring it up again",
		"broken: ovs-vswitchd does not run":  "weft lab down x, then bring it up again",
		"broken: machine m2 does not answer": "",
	} {
		if got := labRemedy(lab.Status{Name: "x", State: state}); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: %q", state, got)
		}
	}
}

// TestLabCommands runs the commands on a real lab, with the real binary.
func TestLabCommands(t *testing.T) {
	t.Parallel()
	weft := testprogram.Weft(t)
	name := fmt.Sprintf("cli%d", os.Getpid())
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	run := func(status int, args ...string) string {
		t.Helper()
		cmd := exec.Command(weft, append([]string{"lab"}, args...)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
			t.Fatalf("weft lab %s: %v, want exit status %d\n%s%s", strings.Join(args, " "), err, status, &out, &errs)
		}
		if status != 0 && errs.Len() == 0 && args[0] != "exec" {
			t.Errorf("weft lab %s fails without a word on stderr", strings.Join(args, " "))
		}
		return out.String()
	}
	file := filepath.Join(t.TempDir(), "net.yaml")
	text := "switches: [{name: s1, fail_mode: standalone}, {name: s2, fail_mode: standalone}]\n" +
		"hosts: [{name: h1, switch: s1}, {name: h2, switch: s2}]\nlinks: [{a: s1, b: s2}]\ncontroller: none\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var up labUpResult
	if err := json.Unmarshal([]byte(run(0, "up", file, "--name", name, "-o", "json")), &up); err != nil || up.Switches != 2 {
		t.Errorf("up: %+v, %v", up, err)
	}
	run(1, "up", file, "--name", name)
	if out := run(0, "list", "-o", "yaml"); !strings.Contains(out, "name: "+name) {
		t.Errorf("list:\n%s", out)
	}
	if out := run(0, "ping", "--all", "-4", "-6", "-i", "10ms", "-W", "10s", "--name", name); !strings.Contains(out, "4 pairs, 12 packets sent, 12 received, 0 lost") {
		t.Errorf("ping:\n%s", out)
	}
	if out := run(0, "exec", "h1", "--name", name, "--", "cat", "/proc/net/if_inet6"); !strings.Contains(out, "fd000000000000000000000000000001") {
		t.Errorf("exec:\n%s", out)
	}
	run(7, "exec", "h1", "--name", name, "--", "sh", "-c", "exit 7")
	testLabShell(t, weft, name)
	other := writeFile(t, "net.clab.yml", "topology:\n  nodes: {s1: {kind: ovs-bridge}, s2: {kind: ovs-bridge}, h1: {kind: linux}, h2: {kind: linux}}\n"+
		"  links: [{endpoints: [\"s1:a\", \"s2:a\"]}, {endpoints: [\"h1:eth1\", \"s1:b\"]}, {endpoints: [\"h2:eth1\", \"s2:b\"], mtu: 1400}]\n")
	if out := run(0, "apply", other, "--name", name, "--dry-run"); !strings.Contains(out, "host h2: mtu to be changed from") || strings.Contains(out, "deleted") {
		t.Errorf("apply of a file of containerlab:\n%s", out)
	}
	run(0, "link", "s1", "s2", "silent", "--name", name)
	run(1, "ping", "h1", "h2", "-i", "10ms", "-W", "100ms", "--name", name)
	if out := run(0, "graph", "--name", name); !strings.Contains(out, "2→s2:2 (silent)") {
		t.Errorf("graph:\n%s", out)
	}
	run(0, "link", "s1", "s2", "up", "--name", name)
	if out := run(0, "link", "s1", "s2", "set", "--delay", "5ms", "--loss", "0%", "--name", name); !strings.Contains(out, "5ms") {
		t.Errorf("link set:\n%s", out)
	}
	var pings []traffic.PingResult
	if err := json.Unmarshal([]byte(run(0, "ping", "h1", "h2", "-W", "10s", "-o", "json", "--name", name)), &pings); err != nil || pings[0].Min < 10 {
		t.Errorf("ping over 5 ms: %+v, %v", pings, err)
	}
	run(0, "iperf", "h1", "h2", "-t", "1s", "--name", name)
	run(2, "link", "s1", "s2", "cut", "--name", name)
	run(0, "down", name)
	if lab.Exists(name) {
		t.Error("down leaves something")
	}
	run(1, "down", name)
}
