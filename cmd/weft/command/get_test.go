package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// What the commands print of a small network, in testdata.
func TestTables(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	for _, c := range []struct {
		line   string
		status int
	}{
		{"get switches", 0}, {"get ports", 0}, {"get ports --switch 0x1", 0}, {"get links", 0}, {"get hosts", 0}, {"get flows", 0},
		{"get flows --switch 1 --owner operator", 0}, {"get groups", 0}, {"get paths --switch 1", 0}, {"get services", 0}, {"get routes", 0},
		{"get sync", 0}, {"get stats", 0}, {"get stats tables", 0}, {"get stats flows", 0}, {"get hosts -o json", 0}, {"get ports -s 1 -o yaml", 0},
		{"path 1 3", 0}, {"path 10.0.0.1 " + h3 + " -k 2 --disjoint", 0},
		{"trace 10.0.0.1 10.0.0.3", 0}, {"trace fd00::1 fd00::3 --tcp-dst 443", 0}, {"trace 10.0.0.3 10.0.0.1", 1},
		{"trace " + h1 + " " + h3 + " --udp-dst 53 -o json", 0},
	} {
		status, out, errs := weftCommand(strings.Fields(c.line)...)
		if status != c.status {
			t.Errorf("weft %s: status %d, %s", c.line, status, errs)
		}
		name := strings.NewReplacer(" ", "_", "--", "", ":", "").Replace(c.line)
		golden(t, name+".golden", out+errs)
	}
	if n.last().path.Count != 2 || n.last().path.Kind != "disjoint" {
		t.Errorf("the request of weft path -k 2 --disjoint: %v", n.last().path)
	}
	if n.last().find.Vlan != -1 {
		t.Errorf("hosts are looked for in VLAN %d; want any (-1)", n.last().find.Vlan)
	}
}

// Every command that prints data does so as JSON and as YAML, too, and says how
// it is used.
func TestOutputForms(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	for _, line := range []string{
		"get switches", "get ports", "get links", "get hosts", "get flows", "get groups", "get paths", "get services", "get routes", "get sync",
		"get stats", "get stats tables", "get stats flows", "path 1 3", "trace 10.0.0.1 10.0.0.3", "version",
		"flow add --switch 1 --action output:1", "flow delete --switch 1", "flow delete --all",
	} {
		var v any
		status, out, errs := weftCommand(append(strings.Fields(line), "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &v); status != 0 || err != nil {
			t.Errorf("weft %s -o json: status %d, %v, %s%s", line, status, err, out, errs)
		}
		status, out, errs = weftCommand(append(strings.Fields(line), "-o", "yaml")...)
		if err := yaml.Unmarshal([]byte(out), &v); status != 0 || err != nil {
			t.Errorf("weft %s -o yaml: status %d, %v, %s%s", line, status, err, out, errs)
		}
		if status, _, errs = weftCommand(append(strings.Fields(line), "-o", "xml")...); status != 2 || !strings.Contains(errs, "allowed: table, json, yaml") {
			t.Errorf("weft %s -o xml: status %d, %s", line, status, errs)
		}
	}
}

// Every command has an example, and every flag and command of an example exists.
func TestExamples(t *testing.T) {
	root := rootCommand()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" && !sub.Hidden {
				visit(sub)
			}
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words := shellWords(line)
			for len(words) > 0 && strings.Contains(words[0], "=") {
				words = words[1:] // the environment
			}
			if len(words) == 0 || words[0] != "weft" {
				t.Errorf("%s: example %q does not begin with weft", c.CommandPath(), line)
				continue
			}
			found, rest, err := root.Find(words[1:])
			if err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
		}
	}
	visit(root)
}

// shellWords splits a command line as a shell does, up to a comment or a pipe.
func shellWords(line string) (words []string) {
	word, quote, inWord := "", rune(0), false
	end := func() {
		if inWord {
			words = append(words, word)
		}
		word, inWord = "", false
	}
	for _, c := range strings.TrimSpace(line) {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ':
			end()
		case c == '|', c == '#' && !inWord:
			end()
			return words
		default:
			word, inWord = word+string(c), true
		}
	}
	end()
	return words
}

// A command called wrongly says so, what is allowed, and exits with 2.
func TestUsageErrors(t *testing.T) {
	for line, want := range map[string]string{
		"nonsense":                             `unknown command "nonsense"`,
		"get nonsense":                         "allowed: apps, audit, crossings, flows, groups, health",
		"get switches --nonsense":              "unknown flag: --nonsense",
		"get switches extra":                   "weft get switches --help",
		"get ports --switch x/z":               "want a name, or a datapath identifier",
		"get stats nonsense":                   "nonsense",
		"get flows --owner nobody":             `--owner "nobody": want one of foreign, discovery,`,
		"get switches --server nonsense":       "want a URL such as http://127.0.0.1:8181",
		"get switches --timeout soon":          "want a duration",
		"path 1":                               "want weft path A B",
		"path h1 2":                            "\"h1\": want a host by Ethernet or IP address, or a switch by name or DPID",
		"explain port 1 x":                     "port \"x\": want the number of a port",
		"explain switch x/z":                   "want a name, or a datapath identifier",
		"l2vpn loop red":                       "want either an end of red or --undo",
		"l2vpn ping red --interval 1us":        "--interval 1µs: want 1ms to 10s",
		"host unbind":                          "want a MAC, or --at SWITCH/PORT",
		"trace 1 2 3":                          "want weft trace A B",
		"flow add":                             "name the switch with --switch",
		"flow add --switch 1 --match in_prt=1": "in_prt",
		"flow add --switch 1 --match ipv4_dst=1.2.3.4": "eth_type",
		"flow add --switch 1 --action fly:1":           "fly",
		"flow add --switch 1 --priority 70000":         "70000",
		"flow add -f x.yaml --switch 1":                "the file says it all",
		"flow add --switch 1 --table 3 --goto-table 2": "want a table after table 3",
		"flow delete --all --match in_port=1":          "--all goes with --switch only",
		"up --log-level loud":                          "allowed: debug, info, warn, error",
		"up --listen nowhere":                          "want HOST:PORT, tcp:HOST:PORT, tls:HOST:PORT or unix:PATH",
		"up nosuchplan":                                "no plan \"nosuchplan\": it is neither built in (5gc, hydra, multi, scale, single, split) nor a file",
		"apply nosuchplan":                             "it is neither built in (5gc, hydra, multi, scale, single, split) nor a file",
		"plan show nosuchplan":                         "it is neither built in (5gc, hydra, multi, scale, single, split) nor a file",
		"plan show":                                    "want weft plan show PLAN",
		"plan show split --running":                    "--running is the plan in force; leave split out",
		"apply":                                        "want weft apply PLAN",
		"up spilt":                                     "did you mean split?",
		"check nosuch":                                 `"nosuch": neither a file, nor a plan that is built in (5gc, hydra, multi, scale, single, split), nor a topology such as ring:4`,
		"check spilt":                                  "did you mean split?",
		"lab up ring":                                  `topology "ring": ring needs numbers; want ring:N[,HOSTS], e.g. ring:4`,
		"lab graph rnig:4":                             "did you mean ring?",
		"check":                                        "want weft check FILE|PLAN|TOPOLOGY...",
		"events --subjects":                            "flag needs an argument",
		"lab nonsense":                                 "allowed:",
		"version -o xml":                               "allowed: table, json, yaml",
	} {
		status, out, errs := weftCommand(strings.Fields(line)...)
		if status != 2 || out != "" || !strings.Contains(errs, want) || !strings.HasPrefix(errs, "weft: ") {
			t.Errorf("weft %s: status %d, %s%s; want 2 and %q", line, status, out, errs, want)
		}
	}
}

// Without a controller every command says how to start one.
func TestNoController(t *testing.T) {
	t.Setenv("WEFT_SERVER", "")
	for _, line := range []string{"get switches", "get flows", "path 1 2", "trace 10.0.0.1 10.0.0.2", "flow delete --all", "events", "flow add --switch 1"} {
		args := append(strings.Fields(line), "--server", "http://127.0.0.1:1")
		status, out, errs := weftCommand(args...)
		if status != 1 || out != "" || !strings.Contains(errs, "no controller answers at http://127.0.0.1:1") || !strings.Contains(errs, "`weft up`") {
			t.Errorf("weft %s: status %d, %s%s", line, status, out, errs)
		}
	}
}

func TestTokenIsSent(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	t.Setenv("WEFT_TOKEN", "from-environment")
	weftCommand("get", "hosts")
	if n.last().token != "Bearer from-environment" {
		t.Errorf("token %q", n.last().token)
	}
	weftCommand("get", "hosts", "--token", "from-flag")
	if n.last().token != "Bearer from-flag" {
		t.Errorf("token %q", n.last().token)
	}
}

// What the controller answers is passed on in its own words.
func TestControllerErrors(t *testing.T) {
	n := &northbound{}
	n.serve(t)
	for line, want := range map[string]string{
		"path 10.0.0.9 1":         "weft: host 10.0.0.9: not known\n",
		"path 1 2":                "weft: there is no path from 1 to 2: no links that are up connect switches 1 and 2\n",
		"flow add -s 1 -p 666":    "weft: 1 of 1 entries failed; the reason is beside them, and weft flow delete takes them back\n",
		"flow delete -s 1 -p 666": "weft: 1 of 1 entries were not there; weft get flows --owner operator lists those that are\n",
	} {
		status, _, errs := weftCommand(strings.Fields(line)...)
		if status != 1 || errs != want {
			t.Errorf("weft %s: status %d, %s; want %s", line, status, errs, want)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if status, out, errs := weftCommand("completion", shell); status != 0 || len(out) < 1000 {
			t.Errorf("%s: status %d, %s", shell, status, errs)
		}
	}
}

// A switch that cannot be read does not keep back what the others have.
func TestOneSwitchCannotBeRead(t *testing.T) {
	n := &northbound{silent: s1}
	n.serve(t)
	status, out, errs := weftCommand("get", "flows")
	if status != 1 || strings.Contains(out, "\n1 ") || !strings.Contains(out, "\n2 ") || errs != "weft: switch 1: it has not answered within 5s\n" {
		t.Errorf("status %d, %s%s", status, out, errs)
	}
}
