package command

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for in, kept := range map[string]string{
		`{"token": "hunter2", "name": "ci"}`:                                             `"name": "ci"`,
		`{"api_key":"hunter2","x":1}`:                                                    `"x":1`,
		`{"text": "gateway:\n  token: hunter2\n  listen: 127.0.0.1:1\n"}`:                `listen: 127.0.0.1:1`,
		`{"text": "gateway: {token: hunter2, listen: a}"}`:                               `listen: a`,
		`{"text": "gateway: {token: \"hunter2\", listen: a}"}`:                           `listen: a`,
		`{"text": "discovery:\n  key: 'hunter2'\n"}`:                                     `discovery:`,
		`{"url": "nats://me:hunter2@127.0.0.1:4222"}`:                                    `127.0.0.1:4222`,
		`{"args": "--set gateway.token=hunter2 --listen x"}`:                             `--listen x`,
		`{"password":"a \" hunter2 \" b","y":"z"}`:                                       `"y":"z"`,
		`{"credentials":["hunter2","hunter2"],"y":"z"}`:                                  `"y":"z"`,
		`{"token":"","flows":[{"cookie":"57","match":{"eth_src":"02:00:00:00:00:01"}}]}`: `02:00:00:00:00:01`,
		`{"tokens":[{"name":"ci","token":"hunter2"}],"key":5,"keys":[1]}`:                `"name":"ci"`,
	} {
		got := string(redact([]byte(in)))
		if strings.Contains(got, "hunter2") || !strings.Contains(got, kept) {
			t.Errorf("%s\nbecomes %s; want no hunter2, and %s kept", in, got, kept)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s\nbecomes %s, which is no JSON", in, got)
		}
	}
}

func TestListPaths(t *testing.T) {
	list, err := listPaths()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(list, " ")
	for _, want := range []string{"/v1/switches", "/v1/workers", "/v1/plan", "/v1/config"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not among %v", want, list)
		}
	}
}
