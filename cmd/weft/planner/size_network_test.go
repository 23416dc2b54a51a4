package planner

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// runs runs a command with a file, and returns what it prints.
func runs(t *testing.T, cmd *cobra.Command, flag, text string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.SetArgs(append([]string{flag, file}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// twoQueues is an open Jackson network of two queues with feedback.
const twoQueues = `queues:
  parse: {service: 1ms}
  match: {service: 2ms, servers: 2}
classes:
  web:
    rate: 300
    enter: parse
    routes:
      parse: {match: 0.5}
      match: {parse: 0.2}
  dns: {rate: 200, enter: {parse: 0.4, match: 0.6}}
`

func TestSizeOfANetwork(t *testing.T) {
	out, err := runs(t, SizeCommand(), "--network", twoQueues, "-o", "json", "--target", "3ms")
	if err != nil {
		t.Fatal(err)
	}
	var r QueueReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	parse := 1 / 0.9 // visits of web: 1 + 0.2 of those to match, which are half of these
	rho := [2]float64{(300*parse + 80) * 1e-3, (300*parse/2 + 120) * 2e-3 / 2}
	at := [2]float64{1 / (1 - rho[0]), 2 / (1 - rho[1]*rho[1])}
	for i, want := range []float64{parse*at[0] + parse/2*at[1], 0.4*at[0] + 0.6*at[1]} {
		c := r.Classes[i]
		if c.FormulaMS == nil || math.Abs(*c.FormulaMS/want-1) > 1e-4 || c.SimulatedMS == nil || math.Abs(*c.SimulatedMS/want-1) > 0.02 || !(*c.CIMS > 0) {
			t.Errorf("%s: %+v, exactly %v ms", c.Class, c, want)
		}
	}
	if r.Met == nil || *r.Met != (*r.Classes[0].SimulatedMS <= 3 && *r.Classes[1].SimulatedMS <= 3) || math.Abs(r.Queues[0].Utilisation-rho[0]) > 1e-4 || r.Of != "mean" {
		t.Errorf("%+v", r)
	}
	if out, err = runs(t, SizeCommand(), "--network", twoQueues, "--formula", "--percentile", "99"); err != nil || !strings.Contains(out, "p99") || !strings.Contains(out, "dns") {
		t.Errorf("as a table: %v\n%s", err, out)
	}
	if _, err := runs(t, SizeCommand(), "--network", twoQueues, "--rate", "10"); err == nil || !strings.Contains(err.Error(), "the file has what --rate would say") {
		t.Errorf("with --rate: %v", err)
	}
}

func TestMistakesInANetworkHaveTheirLines(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"service: 1ms", "service: soon", ":2: queues.parse.service: want a time"},
		{"{service: 1ms}", "{scv: 2}", ":2: queues.parse: no service"},
		{"servers: 2", "servers: 0", ":3: queues.match.servers: want a whole number from 1"},
		{"servers: 2", "copies: 2", "unknown key copies"},
		{"rate: 300", "rate: many", ":6: classes.web.rate: want a number"},
		{"enter: parse", "enter: prase", ":7: classes.web.enter: there is no \"prase\"; there are parse, match"},
		{"{match: 0.5}", "{match: 1.5}", ":9: classes.web.routes.parse.match: want a number from 0 to 1"},
		{"{match: 0.5}", "{match: 0.7, parse: 0.7}", ":9: classes.web.routes.parse: probabilities with a sum of 1.4"},
		{"      match: {parse: 0.2}", "      log: {parse: 0.2}", ":10: classes.web.routes.log: there is no"},
		{"{parse: 0.4, match: 0.6}", "{parse: 0.4}", ":11: classes.dns.enter: probabilities with a sum of 0.4"},
		{"rate: 200, ", "", ":11: classes.dns: no rate"},
		{"classes:\n  web:", "class:\n  web:", ":4: unknown key class"},
		{"rate: 300", "rate: 3000", "overloaded: packets keep queue parse busy"},
		{"{parse: 0.2}", "{parse: 1}", ""},
	} {
		_, err := runs(t, SizeCommand(), "--network", strings.Replace(twoQueues, c.old, c.new, 1), "--formula")
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.new, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}
