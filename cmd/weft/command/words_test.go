package command

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// TestWrongCommandLines checks that what is wrong with a command line is said
// in words of who types it, with where to look, and exit status 2.
func TestWrongCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"trace":                             "something is missing: want weft trace A B",
		"trace 10.0.0.1":                    "1 word, 10.0.0.1: want weft trace A B",
		"qos add x --rate -5":               `--rate "-5": want a rate in whole kbit/s`,
		"qos add x --rate 9999999999999999": `--rate "9999999999999999": want a rate in whole kbit/s, at most 1000T`,
		"qos add x --rate 5T":               "--rate: 5T is more than 4T",
		"get audit --since never":           `--since "never": want a duration, such as 500ms, 30s or 24h`,
		"token create --name ci":            "give --role",
		"get ports -s z/z":                  `--switch: switch "z/z": want a name, or a datapath identifier`,
		"path 1 2 --bandwidth 1q":           `--bandwidth "1q": want a rate in whole kbit/s`,
		"path 1 2 -k 0":                     "--count 0: want 1 to 64 paths",
		"heartbeats":                        `unknown command "heartbeats"; did you mean get heartbeats?`,
		"hold":                              `unknown command "hold"; did you mean host hold?`,
		"lab up ring:3 --controller here":   `--controller: "here" is not a controller's address`,
		"lab up ring:3 --name a.b":          `--name: "a.b" is not a name for a lab`,
		"lab down a/b":                      `"a/b" is not a name for a lab`,
		"nosuch":                            `unknown command "nosuch"; allowed: apply,`,
		"uo":                                `unknown command "uo"; did you mean up?`,
		"get swiches":                       `unknown command "swiches"; did you mean switches?`,
		"get switches more":                 "more: want weft get switches, and nothing after it but flags",
		"get nosuch --what":                 `unknown command "nosuch"; allowed: apps,`,
		"get nosuch":                        `unknown command "nosuch"; allowed: apps,`,
	} {
		var out, errs strings.Builder
		status := execute(strings.Fields(line), &out, &errs)
		if text := errs.String(); status != 2 || out.Len() > 0 || !strings.HasPrefix(text, "weft: "+want) || strings.Count(text, "--help") != 1 {
			t.Errorf("weft %s: exit status %d, output %q, errors %q", line, status, &out, text)
		}
	}
}

// TestServicesThatDoNotDo checks that what is wrong with --services is not
// blamed on the line of a file that nobody has written.
func TestServicesThatDoNotDo(t *testing.T) {
	var out, errs strings.Builder
	status := execute([]string{"up", "--services", "forwarding", "--data-dir", t.TempDir(), "--user", "root"}, &out, &errs)
	if want := "weft: services: pipeline: service southbound"; status != 1 || !strings.HasPrefix(errs.String(), want) {
		t.Errorf("exit status %d, %q; want %s", status, &errs, want)
	}
}

func TestUnanswered(t *testing.T) {
	late, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if err := cli.Unanswered(late, codes.DeadlineExceeded, 8*time.Second); err == nil || !strings.Contains(err.Error(), "within 8s (--timeout)") {
		t.Errorf("%v", err)
	}
	if err := cli.Unanswered(context.Background(), codes.DeadlineExceeded, time.Second); err != nil {
		t.Errorf("what the controller says of its own is replaced by %v", err)
	}
}
