package nf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/nf"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/freeport"
)

// weftNF runs a command line until it ends or ctx does.
func weftNF(ctx context.Context, line string) (string, error) {
	cmd := Command()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(strings.Fields(line))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(ctx)
	return out.String(), err
}

// TestCore runs a core as its commands do, until the AMF has made its
// attachments.
func TestCore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	nrf, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	lines := []string{
		"nrf --listen " + nrf,
		"smf --listen 127.0.0.1:0 --nrf http://" + nrf,
		"ausf --listen 127.0.0.1:0 --allow amf --slice 1-000001 --nrf http://" + nrf,
	}
	for _, line := range lines {
		go func() {
			_, err := weftNF(ctx, line)
			ended <- err
		}()
	}
	out, err := weftNF(ctx, "amf --listen 127.0.0.1:0 --rate 500 --count 20 --stay 1ms --nrf http://"+nrf)
	var r nf.Report
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Attachments.Done != 20 || r.Detachments.Done != 20 {
		t.Errorf("%v: %s", err, out)
	}
	cancel()
	for range lines {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestWrongLines(t *testing.T) {
	for line, want := range map[string]string{
		"amf":                                      "required flag",
		"amf --nrf 10.0.0.1:7777":                  "want a URI",
		"smf --nrf http://x --slice a":             "want SST or SST-SD",
		"smf --nrf http://x --sequence half":       "allowed: paper, full",
		"smf --nrf http://x --rate 5":              "unknown flag",
		"amf --nrf http://x --rate -5":             "no less than 0",
		"amf --nrf http://x --arrivals ever":       "allowed: constant, poisson",
		"nrf --listen nowhere":                     "want HOST:PORT",
		"nrf --key k":                              "give --certificate and --key together",
		"nrf --heartbeat 1ms":                      "want 1s or more",
		"agent --to 10.0.0.5 --listen 127.0.0.1:0": "want a URI",
	} {
		_, err := weftNF(context.Background(), line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("weft nf %s: %v, want %q", line, err, want)
		}
		if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) && !strings.Contains(err.Error(), "flag") {
			t.Errorf("weft nf %s: %v is not said to be the line's fault", line, err)
		}
	}
}
