// Package web has the page that people use the server with. It is one file, with its script and its style inline: dist/index.html,
// which `make page` makes from src. What is large and seldom needed is in parts, scripts that the page loads when it needs them. All are
// committed, so that building lmcaddy needs neither Node.js nor a network.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
)

//go:embed dist/index.html dist/highlight.js dist/math.js dist/pdf.js dist/manifest.json dist/icon.svg
var dist embed.FS

// File is a file as it is sent.
type File struct {
	Plain, Gzip, Zstd []byte
	Type              string // of its content
	// Digest identifies the content.
	Digest string
}

// Page is the page, as it is sent.
type Page struct {
	File
	// Policy is the value of the header Content-Security-Policy: only the page's own script and style may be used, and the
	// scripts of its own server, which may be asked for anything else as well; no other may.
	Policy string
}

// Get returns the page. It is compressed when it is first asked for.
var Get = sync.OnceValue(func() *Page {
	file := read("index.html")
	file.Type = "text/html; charset=utf-8"
	return &Page{File: *file, Policy: policy(string(file.Plain))}
})

// script is the type of the scripts among the parts.
const script = "text/javascript; charset=utf-8"

// parts are what the page loads when it needs it, by their paths: scripts, and what a browser needs to install the page.
var parts = map[string]func() *File{
	"/page/highlight.js":  part("highlight.js", script),
	"/page/math.js":       part("math.js", script),
	"/page/pdf.js":        part("pdf.js", script),
	"/page/manifest.json": part("manifest.json", "application/manifest+json"),
	"/page/icon.svg":      part("icon.svg", "image/svg+xml"),
}

func part(name, contentType string) func() *File {
	return sync.OnceValue(func() *File {
		file := read(name)
		file.Type = contentType
		return file
	})
}

// HasPart reports whether a path is that of a part of the page.
func HasPart(path string) bool { return parts[path] != nil }

// Part returns a part of the page. It is compressed when it is first asked for.
func Part(path string) *File { return parts[path]() }

func read(name string) *File {
	content, err := dist.ReadFile("dist/" + name)
	var zipped bytes.Buffer
	gz, failed := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	zs, wrong := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err := errors.Join(err, failed, wrong); err != nil {
		panic(err) // the file is embedded, and the levels are constants
	}
	_, _ = gz.Write(content) // to memory
	_ = gz.Close()
	defer func() { _ = zs.Close() }()
	sum := sha256.Sum256(content)
	return &File{Plain: content, Gzip: zipped.Bytes(), Zstd: zs.EncodeAll(content, nil), Digest: hex.EncodeToString(sum[:12])}
}

// policy allows what is in the page by its hash, and scripts of its own server, which has only the parts. Without it, text of a model that
// came to be taken for HTML could run.
func policy(html string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' " + hashOf(html, "script"),
		"style-src " + hashOf(html, "style"),
		"img-src 'self' data: blob:", // its own icon, and images of chats
		"media-src blob:",            // recordings of chats
		"manifest-src 'self'",
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
		"require-trusted-types-for 'script'",
		"trusted-types 'none'",
	}, "; ")
}

// hashOf returns the source expression for what is in the page's only element of a name.
func hashOf(html, element string) string {
	_, after, _ := strings.Cut(html, "<"+element)
	_, after, _ = strings.Cut(after, ">")
	content, _, _ := strings.Cut(after, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
