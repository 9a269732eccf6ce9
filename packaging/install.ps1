# Installs lmcaddy of a release on Windows, without an administrator's rights. Nobody has tried this script yet.
#
#   $env:LMCADDY_RELEASE = 'https://…'; .\install.ps1   from the folder or the http(s) address with the release's files
#   .\install.ps1                                       from the folder of this script, if the files are there
#   .\install.ps1 -Uninstall
#
# LMCADDY_PREFIX is the folder for the program: %LOCALAPPDATA%\Programs\lmcaddy by default.
param([switch]$Uninstall)
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue' # drawing its progress takes longer than the download
$to = if ($env:LMCADDY_PREFIX) { $env:LMCADDY_PREFIX } else { Join-Path $env:LOCALAPPDATA 'Programs\lmcaddy' }
$program = Join-Path $to 'lmcaddy.exe'

if ($Uninstall) {
    if (Test-Path $program) { Remove-Item $program }
    "lmcaddy is removed from $to. Models, conversations and tokens are still in $HOME\.lmcaddy."
    return
}

$release = $env:LMCADDY_RELEASE
if (-not $release -and $PSScriptRoot -and (Test-Path (Join-Path $PSScriptRoot 'SHA256SUMS'))) { $release = $PSScriptRoot }
if (-not $release) { throw 'Set LMCADDY_RELEASE to the folder, or the address, with the files of a release.' }
$release = $release.TrimEnd('/', '\')
$arch = switch ($env:PROCESSOR_ARCHITECTURE) { 'AMD64' { 'amd64' } 'ARM64' { 'arm64' } default { throw "There is no archive for $_." } }
$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory $work | Out-Null

function Get-ReleaseFile($name) {
    $file = Join-Path $work $name
    if ($release -match '^https?://') { Invoke-WebRequest -UseBasicParsing "$release/$name" -OutFile $file } else { Copy-Item (Join-Path $release $name) $file }
    $file
}

try {
    $line = Get-Content (Get-ReleaseFile 'SHA256SUMS') | Where-Object { $_ -match "  lmcaddy_[^/\\]*_windows_$arch\.zip$" } | Select-Object -First 1
    if (-not $line) { throw "$release has no archive for windows/$arch." }
    $sum, $name = $line -split '  ', 2
    $archive = Get-ReleaseFile $name
    if ((Get-FileHash -Algorithm SHA256 $archive).Hash -ne $sum) {
        throw "$name isn't what SHA256SUMS says: it is damaged, or has been changed. Nothing was installed."
    }
    Expand-Archive $archive $work
    New-Item -ItemType Directory -Force $to | Out-Null
    Copy-Item -Force (Join-Path $work (Join-Path ([IO.Path]::GetFileNameWithoutExtension($name)) 'lmcaddy.exe')) $program
} finally {
    Remove-Item -Recurse -Force $work
}
"$(& $program version) is installed in $to."
# Path isn't changed here: .NET would write the variables in it, such as %USERPROFILE%, with their values.
if (($env:Path -split ';') -notcontains $to) { "Add $to to Path: 'Edit environment variables for your account' in the Start menu." }
'The engine that runs the models isn''t part of lmcaddy. To get it: lmcaddy runtime get llama.cpp'
