package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"weft/api"
)

func TestReadForward(t *testing.T) {
	for text, want := range map[string]*api.NatForward{
		"tcp:80=10.0.0.3:8080":            {Protocol: "tcp", Port: 80, To: "10.0.0.3", ToPort: 8080},
		"udp:198.51.100.1:53=10.0.0.3":    {Protocol: "udp", Address: "198.51.100.1", Port: 53, To: "10.0.0.3"},
		"tcp:198.51.100.1:80=10.0.0.3:81": {Protocol: "tcp", Address: "198.51.100.1", Port: 80, To: "10.0.0.3", ToPort: 81},
	} {
		if got, err := readForward(text); err != nil || !proto.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tcp", "tcp=10.0.0.3", "tcp:0=10.0.0.3", "tcp:80", "tcp:80=10.0.0.3:x", "tcp:a:b:80=10.0.0.3", "tcp:65536=10.0.0.3"} {
		if got, err := readForward(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
