# Sets up and builds whatever is missing on Windows, then runs `tessera` with the given
# arguments. In GUIs, use target\release\tessera.exe; this script puts the libraries that
# the program needs next to it. Not yet tested on Windows.
$ErrorActionPreference = 'Stop'
$root = Split-Path -Parent $PSScriptRoot
$release = Join-Path $root 'target\release'
$engine = Join-Path $release 'tessera.exe'
$stamp = Join-Path $release 'tessera.built'

function Fail($text) {
    [Console]::Error.WriteLine("tessera: error: $text")
    exit 1
}

# The build must not write to standard output, which UCI uses.
function Invoke-Step($reason, $command) {
    & $command | ForEach-Object { [Console]::Error.WriteLine($_) }
    if ($LASTEXITCODE -ne 0) { Fail $reason }
}

function Test-Fresh {
    if (-not (Test-Path $engine) -or -not (Test-Path $stamp)) { return $false }
    if ((Get-Content $stamp -TotalCount 1) -ne "LIBTORCH=$env:LIBTORCH") { return $false }
    $built = (Get-Item $stamp).LastWriteTime
    $sources = @('src', '.cargo', 'Cargo.toml', 'Cargo.lock', 'build.rs')
    # The built-in board, Stockfish and networks, if they exist.
    $sources += '.board\installed.json', '.stockfish\installed.json', 'nets\default', 'nets\tessera-human.pt'
    $named = Join-Path $root 'nets\default'
    if (Test-Path $named) { $sources += "nets\$((Get-Content $named -TotalCount 1).Trim())" }
    $sources = $sources | ForEach-Object { Join-Path $root $_ } | Where-Object { Test-Path $_ }
    $newer = Get-ChildItem $sources -Recurse -File | Where-Object { $_.LastWriteTime -gt $built }
    return $null -eq ($newer | Select-Object -First 1)
}

if (-not (Test-Fresh)) {
    if (-not (Get-Command python -ErrorAction SilentlyContinue)) {
        Fail 'Python 3 is missing (with pip, it fetches libtorch)'
    }
    $begun = Get-Date
    Invoke-Step 'the set-up failed: the reason is above' { python (Join-Path $root 'tools\setup') }
    Push-Location $root
    Invoke-Step 'the build failed: the reason is above' {
        cargo build --release --bin tessera --target-dir (Join-Path $root 'target')
    }
    Pop-Location
    $libtorch = if ($env:LIBTORCH) { $env:LIBTORCH } else { Join-Path $root '.libtorch\torch' }
    Copy-Item (Join-Path $libtorch 'lib\*.dll') $release
    Set-Content $stamp "LIBTORCH=$env:LIBTORCH"
    (Get-Item $stamp).LastWriteTime = $begun
}
& $engine @args
exit $LASTEXITCODE
