package localsocket

import "testing"

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost:80": true, "127.0.0.1": true, "127.1.2.3:80": true, "::1": true, "[::1]": true, "[::1]:80": true, "::ffff:127.0.0.1": true,
		"": false, ":80": false, "0.0.0.0": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1": false, "localhost.example.org": false, "127.0.0.1.example.org:80": false, "example.org:127": false,
	} {
		if Loopback(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
