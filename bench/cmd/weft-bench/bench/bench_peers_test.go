package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/testprogram"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testprogram.Remove()
	os.Exit(code)
}

func TestPeersRefuseWrongFlags(t *testing.T) {
	const cmd = "cbench -p {port}"
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--generator: want the command"},
		{[]string{"--generator", "cbench"}, "want a command with {port}"},
		{[]string{"--generator", cmd, "--peer", "x"}, `--peer "x": want NAME=CMD`},
		{[]string{"--generator", cmd, "--peer", "a=x"}, `--peer "a": want a command with {port}`},
		{[]string{"--generator", cmd, "--peer", "weft=x {port}"}, "two of this name"},
		{[]string{"--generator", cmd, "--weft", "hub"}, `--weft "hub": want`},
		{[]string{"--generator", cmd, "--weft", "none", "--floor=false"}, "nothing is left"},
		{[]string{"--generator", cmd, "--against", "nox"}, `--against "nox": want one of floor, weft, weft-all`},
		{[]string{"--generator", cmd, "--pin", "maybe"}, `--pin "maybe": want no, yes`},
		{[]string{"--generator", cmd, "--figure", "("}, "--figure: error parsing"},
		{[]string{"--generator", cmd, "--figure", "x"}, "one pair of parentheses"},
		{[]string{"--generator", cmd, "--switches", "0"}, "--switches 0"},
		{[]string{"--generator", cmd, "--rounds", "0"}, "--rounds 0"},
	} {
		if _, err := benchExecute(t, append([]string{"peers"}, c.args...)...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

// A generator and a peer are commands, whatever they do: here, the generator is
// an echo, two peers are floors, and the third fails.
func TestPeersAreMeasured(t *testing.T) {
	program := testprogram.WithBench(t)
	out, err := benchExecute(t, "peers", "--weft", "none", "--floor=false", "--rounds", "3", "--settle", "0s", "-o", "json", "--pin", "no",
		"--generator", "echo 'figure 100 of {switches} on {port}'", "--figure", "figure ([0-9]+)", "--switches", "4",
		"--peer", "one="+program+" bench floor --listen 127.0.0.1:{port}",
		"--peer", "two="+program+" bench floor --listen 127.0.0.1:{port}",
		"--peer", "bad=echo no {port} today; exit 3")
	if err == nil || !strings.Contains(err.Error(), "3 of 3 rounds failed") || !strings.Contains(err.Error(), "today") {
		t.Errorf("error %v", err)
	}
	var r benchPeers
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in:\n%s", err, out)
	}
	if len(r.Rows) != 3 || r.Against != "one" || r.Machine.Cores == 0 || r.Conditions.Build == "" {
		t.Fatalf("%s", out)
	}
	for _, row := range r.Rows[:2] {
		if row.AnswersPerS != 100 || row.Ratio != 1 || len(row.Rounds) != 3 || len(row.CI95["ratio"]) != 0 /* three rounds have no interval */ || row.Memory == 0 {
			t.Errorf("%+v", row)
		}
	}
	if bad := r.Rows[2]; len(bad.Rounds) != 0 || len(bad.Failed) != 3 {
		t.Errorf("%+v", bad)
	}
}

func TestPeersSayWhatTheGeneratorSaid(t *testing.T) {
	program := testprogram.WithBench(t)
	for _, c := range []struct{ generator, want string }{
		{"echo nothing of {port}", "is nowhere in what the generator said, which ends in: nothing of"},
		{"echo broken {port}; exit 4", "exit status 4; it said: broken"},
		{"sleep 60 # {port}", "not done after 300ms"},
	} {
		_, err := benchExecute(t, "peers", "--weft", "none", "--floor=false", "--rounds", "1", "--settle", "0s", "--pin", "no", "--timeout", "300ms",
			"--generator", c.generator, "--peer", "one="+program+" bench floor --listen 127.0.0.1:{port}")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.generator, err, c.want)
		}
	}
}
