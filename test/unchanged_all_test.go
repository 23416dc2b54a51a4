//go:build soak

package test

const everyChange = true
