package test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
)

// trustRoot has another user of the machine, and the administrator, try to have
// the controller run a program or remove a file of theirs.
func trustRoot(t *testing.T, f *faults) {
	d := f.prepare(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, firewall, stats, qos, ryu, gateway]}\n")
	ryu := freeAddress(t)
	d.flags = []string{"--ryu", ryu}
	d.supervise()
	d.allUp()

	// Others of the machine read, and no more.
	const stranger = 65533
	program := filepath.Join(os.TempDir(), fmt.Sprintf("weft-trust-%d", os.Getpid())) // which they may run
	data, err := os.ReadFile(f.weft)
	if err != nil {
		t.Fatal(err)
	}
	testprogram.Install(t, program, data)
	t.Cleanup(func() { os.Remove(program) })
	as := func(args ...string) (string, error) {
		cmd := exec.Command(program, append(args, "--server", "http://"+d.north)...)
		cmd.Dir, cmd.Env = "/", []string{"HOME=/"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := as("get", "switches"); err != nil {
		t.Errorf("user %d reads: %v %s", stranger, err, out)
	}
	for _, args := range [][]string{
		{"flow", "add", "--switch", "1"}, {"firewall", "default", "deny"}, {"config", "show"}, {"config", "rollback"},
		{"token", "create", "--name", "mine", "--role", "admin"}, {"apply", "split"},
	} {
		if out, err := as(args...); err == nil || !strings.Contains(out, "user 65533 of this machine has read") {
			t.Errorf("user %d, weft %s: %v %s", stranger, strings.Join(args, " "), err, out)
		}
	}
	conf := "http://" + ryu + "/v1.0/conf/switches/0000000000000001/x"
	if resp, err := http.Get("http://" + ryu + "/stats/switches"); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("Ryu's REST: %v, %v", resp, err)
	}
	curl := exec.Command("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", "-d", "1", conf)
	curl.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	if out, err := curl.CombinedOutput(); err != nil || string(out) != "403" {
		t.Errorf("user %d by Ryu's REST: %v, %s; want 403", stranger, err, out)
	}

	// Not even an administrator names programs and files.
	victim := d.write("victim", "kept")
	evil := d.write("evil", "#!/bin/sh\ntouch "+filepath.Join(d.dir, "ran")+"\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	gateway := api.NewGatewayClient(d.conn)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "decided at start") {
			t.Errorf("%s: %v; want that it is decided at start", what, err)
		}
	}
	for _, text := range []string{
		"qos: {vsctl: " + evil + "}", "qos: {vsctl_options: [--exec=" + evil + "]}", "qos: {ovsdb: \"unix:" + victim + "\"}",
		"southbound: {listen: [\"unix:" + victim + "\"]}", "southbound: {standby_listen: [\"unix:" + victim + "\"]}",
		"gateway: {token_file: " + victim + "}", "gateway: {certificate: " + victim + ", key: " + victim + "}", "ryu: {token_file: " + victim + "}",
	} {
		_, err := gateway.ApplyConfig(context.Background(), &api.ApplyConfigRequest{Text: text})
		refused(text, err)
		_, err = gateway.ApplyPlan(context.Background(), &api.ApplyPlanRequest{Text: d.planWith("config: {" + text + "}")})
		refused("plan with "+text, err)
	}
	for _, text := range []string{"bus: {url: \"nats://127.0.0.1:1\"}", "bus: {url: \"nats://127.0.0.1:1\", credentials: " + victim + "}"} {
		_, err := gateway.ApplyPlan(context.Background(), &api.ApplyPlanRequest{Text: d.planWith(text)})
		refused(text, err)
	}
	env := strings.Replace(d.planWith(""), "gateway]}", "gateway], env: {PATH: "+d.dir+"}}", 1)
	_, err = gateway.ApplyPlan(context.Background(), &api.ApplyPlanRequest{Text: env})
	refused("a plan's env", err)

	// Only sockets are removed, whoever names them.
	bad, err := exec.Command(d.weft, "up", "--data-dir", filepath.Join(d.dir, "other"), "--http", freeAddress(t), "--listen", "unix:"+victim).CombinedOutput()
	if err == nil || !bytes.Contains(bad, []byte("is no socket")) {
		t.Errorf("weft up --listen unix:FILE: %v %s", err, bad)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("the file is now %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "ran")); err == nil {
		t.Error("the program has run")
	}
}

// planWith returns the deployment's plan with a line more.
func (d *deployment) planWith(line string) string {
	d.t.Helper()
	text, err := os.ReadFile(d.plan)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text) + line + "\n"
}
