package command

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// TestTypedFlags: a wrong word for a number, a time, a rate or a switch is answered with
// the flag, the word and what is wanted, at every command that has such a flag.
func TestTypedFlags(t *testing.T) {
	const word = "blue cheese"
	forms := map[string]string{
		"duration": "want a duration, such as 500ms", "rate": "such as 100M, 2.5G or 100mbit", "SWITCH": "want a name, or a datapath identifier of up to 16 hex digits",
		"float64": "want a number", "int": "want a whole number", "int32": "want a whole number", "intSlice": "want a whole number",
		"uint8": "want a whole number", "uint16": "want a whole number", "uint32": "want a whole number", "uint64": "want a whole number",
		"bool": "want true or false",
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			kind := f.Value.Type()
			if kind == "string" || strings.HasPrefix(kind, "string") {
				return // TestFlagsOfAForm
			}
			err := cmd.ParseFlags([]string{"--" + f.Name + "=" + word})
			if err == nil {
				t.Errorf("%s --%s takes %s", cmd.CommandPath(), f.Name, word)
				return
			}
			got := cmd.FlagErrorFunc()(cmd, err).Error()
			if want := forms[kind]; want == "" || !strings.HasPrefix(got, "--"+f.Name) || !strings.Contains(got, fmt.Sprintf("%q", word)) || !strings.Contains(got, want) {
				t.Errorf("%s --%s (%s): %s", cmd.CommandPath(), f.Name, kind, got)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	root := rootCommand()
	cli.Strict(root)
	visit(root)
}

// TestFlagsOfAForm: what is wrong with a text that is a pair, a rate, a time, a share, an
// address, a place or a list of such begins with the flag, names the word, and says which
// form is wanted, before any controller is asked.
func TestFlagsOfAForm(t *testing.T) {
	t.Setenv("WEFT_SERVER", "http://127.0.0.1:9")
	dir := t.TempDir()
	for _, c := range []struct{ line, flag, want string }{
		{"path 1 2", "pair", "want links, switches or risk-groups"},
		{"path 1 2", "minimise", "want cost, delay or narrowness"},
		{"path 1 2", "exclude", "of up to 16 hex digits"},
		{"path 1 2", "via", "of up to 16 hex digits"},
		{"trace 10.0.0.1 10.0.0.2", "eth-dst", "want six hex octets, such as"},
		{"host bind 02:00:00:00:00:01", "at", "SWITCH:PORT, such as s1:3"},
		{"lab link s1 s2 set", "rate", "such as 100M, 2.5G or 100mbit"},
		{"lab link s1 s2 set", "delay", "such as 5ms"},
		{"lab link s1 s2 set", "jitter", "such as 5ms"},
		{"lab link s1 s2 set", "loss", "such as 1%"},
		{"lab iperf h1 h2", "udp", "such as 100M, 2.5G or 100mbit"},
		{"lab up ring:4", "controller", "allowed: tcp:HOST:PORT"},
		{"lab traffic h1 h2", "arrivals", "want poisson or constant"},
		{"plan make --network ring:4", "servers", "want a number of shares of this machine, or a file"},
		{"plan make --network ring:4", "delay", "such as 300us"},
		{"plan make --network ring:4", "heartbeat-deadline", "such as 10ms"},
		{"plan make --network ring:4", "probe-deadline", "such as 10ms"},
		{"plan make --network ring:4", "replicas", "want NAME=VALUE"},
		{"plan make --network ring:4", "pin", "want NAME=VALUE"},
		{"plan make --network ring:4", "power", "want NAME=VALUE"},
		{"plan make --network ring:4", "fix", "want PARTITION=SWITCHES"},
		{"plan make --network ring:4", "partitions", "want a number, or auto"},
		{"plan make --network ring:4", "isolate", "want one of server, process, none"},
		{"plan make --network ring:4", "transport", "want one of grpc, ws, rest, shm, nats"},
		{"plan make --network ring:4", "method", "want one of auto, structure, cut"},
		{"plan partition --network ring:4", "method", "want one of auto, structure, cut"},
		{"plan partition --network ring:4", "partitions", "want a number, or auto"},
		{"plan partition --network ring:4", "fix", "want PARTITION=SWITCHES, such as"},
		{"plan partition --network ring:4", "together", "a range of DPIDs such as 1-8"},
		{"plan partition --network ring:4", "apart", "a range of DPIDs such as 1-8"},
		{"plan partition --network ring:4", "borders", "a range of DPIDs such as 1-8"},
		{"plan partition --network ring:4", "after", "want failure or start"},
		{"size", "dispersion", "want TIME=INDEX, such as 10ms=1.5"},
		{"size", "overhead", "want N:MS, such as 16:0.2"},
		{"size", "cpus", "want numbers of processors, or own"},
		{"flow add", "switch", "want a name, or a datapath identifier"},
		{"flow add --switch 1", "match", "want FIELD=VALUE, such as in_port=1"},
		{"flow add --switch 1", "action", "want output:PORT"},
		{"flow add --switch 1", "write-action", "want output:PORT"},
		{"firewall add --deny", "match", "want FIELD=VALUE"},
		{"firewall add --deny", "switch", "want a name, or a datapath identifier"},
		{"get packets", "switch", "want a name, or a datapath identifier"},
		{"get packets", "match", "want FIELD=VALUE, such as in_port=1"},
		{"get flows", "owner", "want one of foreign, "},
		{"get ports", "server", "want a URL such as http://127.0.0.1:8181"},
		{"tunnel add x --from 1 --to 2", "exclude", "of up to 16 hex digits"},
		{"balancer add x", "member", "want"},
		{"chain add x --match ip", "via", "of up to 16 hex digits"},
		{"up --data-dir " + dir, "listen", "want HOST:PORT, tcp:HOST:PORT"},
		{"up --data-dir " + dir, "http", "want HOST:PORT, such as 127.0.0.1:8181"},
		{"up --data-dir " + dir, "ryu", "want HOST:PORT, such as 127.0.0.1:8181"},
		{"up --data-dir " + dir, "trace", "want http://HOST:PORT"},
		{"up --data-dir " + dir, "set", "want service.key=value"},
		{"up --data-dir " + dir, "log-level", "debug, info, warn, error"},
		{"up --data-dir " + dir, "services", "allowed: southbound"},
	} {
		const word = "blue/cheese"
		args := append(strings.Fields(c.line), "--"+c.flag, word)
		if args[0] == "up" && os.Geteuid() == 0 {
			args = append(args, "--user", "root")
		}
		var out, errs strings.Builder
		status := execute(args, &out, &errs)
		_, got, _ := strings.Cut("\n"+errs.String(), "\nweft: ")
		if status != 2 || !strings.HasPrefix(got, "--"+c.flag) || !strings.Contains(got, word) || !strings.Contains(got, c.want) {
			t.Errorf("weft %s: exit status %d, %.400q; want %q", strings.Join(args, " "), status, errs.String(), c.want)
		}
	}
}
