package command

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/certs"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// gatewayApart writes a plan that has the gateway in a process of its own.
func gatewayApart(t *testing.T) string {
	t.Helper()
	var rest []string
	for _, s := range services.All(gateway.Process{}) {
		if s.Name != "gateway" {
			rest = append(rest, s.Name)
		}
	}
	return writeFile(t, "apart.yaml", "name: apart\nworkers:\n  network: {services: ["+strings.Join(rest, ", ")+"]}\n  gateway: {services: [gateway]}\n")
}

// Tokens, roles and the audit log over TLS, by the commands: in one process and
// in processes of a plan, of which the gateway dies in between.
func TestTokensOverTLS(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprint("apart=", apart), func(t *testing.T) {
			dir, pki, north := t.TempDir(), filepath.Join(t.TempDir(), "pki"), freeAddress(t)
			must(t, "certs controller --dir "+pki)
			t.Setenv("WEFT_SERVER", "https://"+north)
			args := []string{"up", "--user", "root"} // whose key it reads
			if apart {
				args = append(args, gatewayApart(t))
			}
			args = append(args, "--listen", freeAddress(t), "--http", north, "--data-dir", dir, "--log-level", "warn",
				"--set", "gateway.certificate="+certs.File(pki, "controller"), "--set", "gateway.key="+filepath.Join(pki, "controller.key"),
				"--set", "gateway.client_authority="+certs.File(pki, "ca"))
			p := startWeft(t, args...)
			p.says("northbound on https://" + north)
			fails := func(want string, args ...string) {
				t.Helper()
				if status, out, errs := weftCommand(args...); status == 0 || !strings.Contains(errs, want) {
					t.Errorf("weft %s: status %d, %s%s; want %s", strings.Join(args, " "), status, out, errs, want)
				}
			}
			fails("give its ca.crt with --ca", "get", "hosts")
			fails("give its ca.crt with --ca", "events", "-n", "1", "--timeout", "5s")
			fails("does not speak HTTP without TLS", "get", "hosts", "--server", "http://"+north)
			fails("--ca is for https", "get", "hosts", "--server", "http://"+north, "--ca", certs.File(pki, "ca"))
			t.Setenv("WEFT_CA", certs.File(pki, "ca"))
			testwait.Until(t, "the controller answers", func() bool {
				status, _, _ := weftCommand("get", "hosts", "--timeout", "5s")
				return status == 0
			})

			token := func(name, role string) string {
				t.Helper()
				var made created
				if err := json.Unmarshal([]byte(must(t, "token create --name "+name+" --role "+role+" --expires 30d -o json")), &made); err != nil {
					t.Fatal(err)
				}
				return made.Token
			}
			operator, reader := token("operator", "operate"), token("reader", "read")
			if out := must(t, "token list"); !strings.Contains(out, "operator") || strings.Contains(out, operator) {
				t.Errorf("token list:\n%s", out)
			}
			fails("revoke it first", "token", "create", "--name", "reader", "--role", "admin")
			fails("allowed: node, read, operate, admin", "token", "create", "--name", "x", "--role", "root")
			fails("want a time such as 30d", "token", "create", "--name", "x", "--role", "read", "--expires", "soon")
			add := []string{"flow", "add", "-s", "1", "-m", "in_port=1", "-a", "output:2", "--no-wait"}
			fails("needs the role operate, and the token reader has read", append(add, "--token", reader)...)
			must(t, strings.Join(add, " ")+" --token "+operator)
			fails("needs the role admin", "get", "audit", "--token", operator)
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(reader+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, "get hosts --token-file "+file)
			must(t, "certs issue ann --role read --dir "+pki)
			must(t, "certs issue north --dir "+pki)
			shown := "--client-cert=" + certs.File(pki, "ann")
			must(t, "get hosts "+shown)
			fails("needs the role operate, and the certificate ann has read", append(add, shown)...)
			fails("is no client's", "get", "hosts", "--client-cert", certs.File(pki, "north"))
			fails("--client-cert is for https", "get", "hosts", "--server", "http://"+north, shown)
			fails("want a file NAME.crt", "get", "hosts", "--client-cert", filepath.Join(pki, "ann.key"))
			fails("no such file", "get", "hosts", "--client-cert", certs.File(pki, "nobody"))
			fails("allowed: node, read, operate, admin", "certs", "issue", "x", "--role", "god", "--dir", pki)
			must(t, "get apps --token-file "+file) // without the plan, which is not for readers
			fails("no such file", "get", "hosts", "--token-file", file+"x")

			if !apart { // another run
				p.ends(syscall.SIGTERM)
				p = startWeft(t, args...)
				p.says("northbound on https://" + north)
			} else {
				pid := workers(t, "")["gateway"]
				if pid == 0 {
					t.Fatal("there is no worker gateway")
				}
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			testwait.Until(t, "the gateway is back", func() bool {
				status, _, _ := weftCommand("get", "hosts", "--timeout", "5s", "--token", reader)
				return status == 0
			})
			must(t, "token revoke reader")
			fails("wrong, has ended, or was revoked", "get", "hosts", "--token", reader)
			must(t, "get hosts --token "+operator)
			fails("there was no token reader", "token", "revoke", "reader")

			var log struct {
				Records []struct{ Who, Role, Method, Result, Request, From string }
			}
			if err := json.Unmarshal([]byte(must(t, "get audit -o json")), &log); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range log.Records {
				got = append(got, r.Who+" "+r.Method+" "+r.Result)
				if strings.Contains(r.Request, operator) || !strings.HasPrefix(r.From, "127.0.0.1:") {
					t.Errorf("%+v", r)
				}
			}
			want := []string{
				"loopback gateway.CreateToken OK", "loopback gateway.CreateToken OK", "loopback gateway.CreateToken AlreadyExists", "loopback gateway.CreateToken InvalidArgument",
				"reader flowrules.AddFlows PermissionDenied", "operator flowrules.AddFlows OK", "certificate ann flowrules.AddFlows PermissionDenied", "loopback gateway.RevokeToken OK", "loopback gateway.RevokeToken OK",
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("the audit log:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if out := must(t, "get audit --who operator --since 1h --method flowrules"); strings.Count(out, "\n") != 2 {
				t.Errorf("%s", out)
			}
			files, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
			if err != nil || len(files) != 2 { // of changes and of refusals
				t.Errorf("%q %v", files, err)
			}
		})
	}
}

func TestDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "90m": 90 * time.Minute, "1d": 24 * time.Hour} {
		if d, err := days(text); err != nil || d != want {
			t.Errorf("%s: %v %v", text, d, err)
		}
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1.5d", "-1h", "0s", "99999999d", "soon"} {
		if d, err := days(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}
